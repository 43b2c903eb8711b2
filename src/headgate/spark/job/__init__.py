"""The streaming job: each micro-batch is matched under one version of the queries, exactly once.

Spark keeps the offsets and runs the tasks. A task reads its events by the one parser (`events`),
matches them, and writes its rows into a stage (`batch`); only counts go back to the driver, which
places the rows of all tasks at once under the batch's number and says so in a log (`commit`). What
was staged but not placed, or placed but not logged, is done again after a crash.
"""
