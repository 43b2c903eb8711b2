"""The kernel decorator, processor intrinsics, and the cache of compiled kernels."""
