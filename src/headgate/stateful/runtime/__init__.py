"""A synopsis is a monoid: rows are reduced, reductions merge, and only reductions meet state.

    stream_rows ─► buckets ─► reduction ─► join ─► answer_state ─► running_query ─► output_rows
      a batch      few rows    as bytes    with what is kept of the other streams

`program` puts these together for one query, `running_query` holds its state, `windowed_query` runs
a query with row `windows`, `admission` refuses what cannot run, and `launch` starts a query.
"""
