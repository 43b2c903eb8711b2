"""The algorithms that the BE-Tree paper compares with: what is known about them, made fast.

"Analysis and optimization for Boolean expression indexing", sections 2.1 and 8.3, tells them. All
work on the codes of `headgate.matching.keyed.code_book`, so every type is exact, on conjunctions,
of which a query with OR has several, and on one thread.

| file               | the rival                                                                 |
|--------------------|---------------------------------------------------------------------------|
| `sift`             | SIFT: counts, over all queries, the predicates that an event satisfies    |
| `k_index`          | k-index: lists of queries with K predicates, walked together              |
| `gryphon`          | Gryphon: a tree that asks for one attribute after the other               |
| `advanced_gryphon` | the same over intervals, of which a covering one is tested first          |
| `propagation`      | Propagation: queries hashed by one or two of their equality predicates    |
| `app`              | APP: counts only for queries whose rarest predicate holds                 |
"""
