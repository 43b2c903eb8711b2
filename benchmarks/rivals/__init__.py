"""The algorithms that papers compare with: what is known about them, made fast.

"Analysis and optimization for Boolean expression indexing", sections 2.1 and 8.3, tells the first
of them. They work on the codes of `headgate.matching.encoding.code_book`, so every type is exact,
on conjunctions, of which a query with OR has two or more, and on one thread.

| file          | the rivals                                                                     |
|---------------|--------------------------------------------------------------------------------|
| `counting`    | SIFT counts, over all queries, the predicates that an event satisfies; APP     |
|               | counts only for queries whose rarest predicate holds                           |
| `k_index`     | k-index: lists of queries with K predicates, walked together                   |
| `gryphon`     | Gryphon: a tree that tests one attribute after the other; Advanced Gryphon     |
|               | has intervals, of which a covering one is tested first                         |
| `propagation` | Propagation: queries hashed by one or two of their equality predicates         |

Not from a paper is `bare`: the least that matching conjunctions of ranges takes, as a yardstick.

"Adaptive two-level optimization for selection predicates of multiple continuous queries", section
6, has orders of evaluation. In `routing`, on the bitmaps of `headgate.matching.asc`: Ticket Routing
(eddies), a random order, A-Greedy (one order, kept greedy by a profile of the latest events), and
the best and the worst of all fixed orders.

What is compiled by Numba is in `kernels/`, and only that.
"""
