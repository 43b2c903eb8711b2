"""Tests: each carries a one-sentence claim. `property` holds the laws, the rest reads by package."""
