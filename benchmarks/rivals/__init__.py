"""The algorithms that papers compare with: what is known about them, made fast.

"Analysis and optimization for Boolean expression indexing", sections 2.1 and 8.3, tells the first
of them. They work on the codes of `headgate.matching.encoding.code_book`, so every type is exact,
on conjunctions, of which a query with OR has several, and on one thread.

| file               | the rival                                                                 |
|--------------------|---------------------------------------------------------------------------|
| `sift`             | SIFT: counts, over all queries, the predicates that an event satisfies    |
| `k_index`          | k-index: lists of queries with K predicates, walked together              |
| `gryphon`          | Gryphon: a tree that asks for one attribute after the other               |
| `advanced_gryphon` | the same over intervals, of which a covering one is tested first          |
| `propagation`      | Propagation: queries hashed by one or two of their equality predicates    |
| `app`              | APP: counts only for queries whose rarest predicate holds                 |

"Adaptive two-level optimization for selection predicates of multiple continuous queries", section
6, has orders of evaluation. They work on the bitmaps of `headgate.matching.asc` (`routed`):

| file           | the rival                                                                     |
|----------------|-------------------------------------------------------------------------------|
| `lottery`      | Ticket Routing (eddies), and a random order                                   |
| `a_greedy`     | A-Greedy: one order, kept greedy by a profile of the latest events            |
| `fixed_orders` | the best and the worst of all fixed orders                                    |
"""
