"""The compiled part of ASC, over one table of bits with a row per region and a column per query.

`fill` writes the bits, `evaluate` takes events through them, and `sequences` chooses the order in
which that is done.
"""
