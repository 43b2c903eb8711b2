"""A network of nodes; streams that flow through it; where a new query taps in, and what widens."""
