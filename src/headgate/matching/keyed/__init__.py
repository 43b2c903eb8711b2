"""An index in which an event looks only at queries that one of its own values leads to.

build          queries are placed under their keys, in clusters, or all in one grid
kernels        keys, entries, rows, programs, clusters, grid, match; `arrays` says what they read
segment        queries that were placed together, and events as their arrays need them
parts          segments without removed queries: how queries come, go, and are merged
batch          a batch against all parts, on one or more threads
index          the index over these, from queries or from the arrays of a snapshot
"""
