"""Tests of `headgate.jit`."""
