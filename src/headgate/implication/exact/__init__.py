"""Exact matching, compiled: does a union of boxes cover others, and what does it leave over?"""
