"""Kernels: which products contain a product, which unions cover it, and who the parents are."""
