"""A synopsis is what is kept of a stream: a bounded number of buckets, and little in each.

Which buckets (`plan`, `cells`, `branches`), what each keeps (`extremes`, `stores`), in words
(`synopsis`) and numbers (`memory`), and the obvious way to run it (`plain`).
"""
