"""Queries and events as dense arrays."""

from headgate.encoding.columns import CodedColumn, double_ranks, encode_column

__all__ = ["CodedColumn", "double_ranks", "encode_column"]
