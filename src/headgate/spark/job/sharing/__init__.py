"""A plan of shared streams on Spark: its files, tasks, traffic, and exchange."""
