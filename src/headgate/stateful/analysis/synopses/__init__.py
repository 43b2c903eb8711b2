"""A synopsis is what is kept of a stream: a bounded number of buckets, and little in each.

Which buckets (`plan`, `cells`, `branches`), what each keeps (`extremes`), what is kept of the
answer (`answer_parts`), in words (`synopsis`) and numbers (`memory`, `sizes`), and the obvious way to run
it, row by row (`reference`).
"""
