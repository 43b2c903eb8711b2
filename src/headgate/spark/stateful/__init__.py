"""stateful."""
