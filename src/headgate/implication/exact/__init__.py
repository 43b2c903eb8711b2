"""Exact matching, compiled: decide whether boxes cover others, and find what they leave over."""
