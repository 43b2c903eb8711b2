"""The kernels of events: lines of JSON, and columns of Arrow as they lie in memory."""
