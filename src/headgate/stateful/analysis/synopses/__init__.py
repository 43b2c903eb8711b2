"""A synopsis is what is kept of a stream: a bounded number of buckets, and little in each.

Which buckets (`plan`, `cells`, `branches`), what each keeps (`extremes`), what is kept of the
answer (`answer_parts`), and all of it in words and numbers (`synopsis`, `sizes`).
"""
