"""An index in which an event looks only at queries that one of its own values leads to.

code_book      values become the numbers of regions that no condition divides
keys           the conditions of which one must hold for a query to hold, the rarest there are
build          queries are filed under their keys (`entries`), in `records` or in one `grid`
text_search    which of very many patterns match a text
match          the inner loop; `arrays` says what it reads, `compiled` how it is kept
segment, run   queries that were filed together, and a batch against all of them
changes        new and removed queries, and when all are filed anew
index          the index over these; `of_snapshot` makes one without an object for any query
"""
