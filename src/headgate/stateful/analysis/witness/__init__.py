"""A witness is rows of which every one must be remembered, and what follows to show it.

Its values are scheduled on number lines (`schedule`, `fill`) and then become rows (`rows`).
"""
