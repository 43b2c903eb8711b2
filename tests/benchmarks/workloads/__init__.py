"""Generators: seeded, valid, and as was asked for."""
