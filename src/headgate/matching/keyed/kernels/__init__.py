"""The kernels of the keyed index: keys, entries, rows, programs, clusters, grid, and the match."""
