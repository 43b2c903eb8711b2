"""Tests of `headgate.encoding`."""
