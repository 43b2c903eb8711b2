"""Queries and events as dense arrays."""

from headgate.snapshot.arrays.atoms import EncodedAtoms
from headgate.snapshot.arrays.queries import EncodedQueries, decode_queries, encode_queries
from headgate.snapshot.arrays.texts import Texts
from headgate.snapshot.arrays.trees import Trees
from headgate.snapshot.arrays.validate import flaw

__all__ = [
    "EncodedAtoms",
    "EncodedQueries",
    "Texts",
    "Trees",
    "decode_queries",
    "encode_queries",
    "flaw",
]
