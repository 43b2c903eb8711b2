"""Every figure that Headgate draws, behind the extra `[plot]`.

- `network.plot_plan`: a network and its shared streams (`headgate share plan --plot`).
- `memory.plot_comparisons`: the comparisons of a join or an aggregate, and which of them make
  its memory unbounded (`headgate check --plot`).
- `relaxation.plot_relaxation`: two conditions, and how one is relaxed until it holds the other
  (`headgate relax --plot`).
- `evaluation_order.plot_periods`: the order of evaluation of the index `asc` over time
  (`--order-plot` of `headgate match` and `headgate run`).

`figures` has what they share: colours, the check of a file name before the work is done, and
saving. matplotlib is imported when a figure is drawn, never before.
"""
