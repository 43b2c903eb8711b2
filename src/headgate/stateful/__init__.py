"""Stateful queries: `analysis` says whether bounded memory suffices, `runtime` runs them in it."""
