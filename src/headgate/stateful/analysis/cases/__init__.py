"""A query is a union of cases: conjunctive queries, each with the way back to rows and types."""
