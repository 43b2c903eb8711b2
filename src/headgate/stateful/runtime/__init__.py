"""A synopsis is a monoid: rows are reduced, reductions merge, and only reductions meet state.

    stream_rows ─► counted, chosen (bucketing) ─► reduction ─► join ─► answers ─► run
      a batch        few weighted rows             as bytes    with what is kept of the others

`program` puts these together for one query, `run` holds its state, `windowed` is the run of a query
with row windows, and `opening` begins one.
"""
