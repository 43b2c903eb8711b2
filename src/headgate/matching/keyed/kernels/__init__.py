"""The kernels of the keyed index: keys, entries, records, grid, and the inner loop of a match."""
