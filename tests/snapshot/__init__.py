"""Tests of `headgate.snapshot`."""
