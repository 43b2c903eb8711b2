"""Numba kernels of the rivals: arrays in, arrays out; Numba infers their types."""
