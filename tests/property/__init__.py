"""Laws that hold for every input: `oracle_*` recompute from scratch, `agree_*` compare two ways."""
