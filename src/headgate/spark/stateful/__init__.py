"""Stateful queries over DataFrames: joins, aggregates and DISTINCT that run continuously."""
