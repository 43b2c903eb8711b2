"""Second opinions: what the product computes, computed again by code that shares none with it."""
