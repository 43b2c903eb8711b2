"""Queries as dense arrays, and back again exactly.

queries        ids, metadata, frames and conditions (`trees` over `atoms`)
selection      encoded queries selected and concatenated, without an object for any of them
validate       arrays from a file, checked before any kernel reads them
"""

from headgate.snapshot.arrays.atoms import EncodedAtoms
from headgate.snapshot.arrays.queries import EncodedQueries, decode_queries, encode_queries
from headgate.snapshot.arrays.texts import Texts
from headgate.snapshot.arrays.trees import Trees
from headgate.snapshot.arrays.validate import find_flaw

__all__ = [
    "EncodedAtoms",
    "EncodedQueries",
    "Texts",
    "Trees",
    "decode_queries",
    "encode_queries",
    "find_flaw",
]
