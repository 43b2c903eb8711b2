"""Runs experiments: contestants take turns, results are judged by claims, drawn and written."""
