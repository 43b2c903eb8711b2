"""The harness with contestants that do nothing, and tiny runs of the real experiments."""
