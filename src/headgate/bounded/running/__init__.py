"""A synopsis is a monoid: rows are reduced, reductions merge, and only reductions meet state."""
