"""Queries and events as dense arrays."""

from headgate.encoding.atoms import EncodedAtoms
from headgate.encoding.columns import (
    CodedColumn,
    double_ranks,
    encode_column,
    encode_present,
    plain_numbers,
)
from headgate.encoding.queries import EncodedQueries, decode_queries, encode_queries
from headgate.encoding.texts import Texts
from headgate.encoding.trees import Trees
from headgate.encoding.validate import flaw

__all__ = [
    "CodedColumn",
    "EncodedAtoms",
    "EncodedQueries",
    "Texts",
    "Trees",
    "decode_queries",
    "double_ranks",
    "encode_column",
    "encode_present",
    "encode_queries",
    "flaw",
    "plain_numbers",
]
