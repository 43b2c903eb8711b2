"""Tests of `headgate.snapshot.arrays`."""
