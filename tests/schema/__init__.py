"""Streams, attributes and times as text."""
