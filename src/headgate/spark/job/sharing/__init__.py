"""A plan of shared streams, run on Spark: one streaming query walks all nodes of an application."""
