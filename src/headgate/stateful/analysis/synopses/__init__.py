"""A synopsis is what is kept of a stream: a bounded number of buckets, and little in each.

Which buckets (`plan`, `cells`, `branches`), what each keeps (`extremes`), what is kept of the
answer (`answer_parts`), all in words (`synopsis`) and numbers (`memory`, `sizes`), and the obvious
way to run a query from them, row by row (`reference`).
"""
