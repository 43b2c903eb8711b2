"""An index in which an event looks only at queries that one of its own values leads to.

code_book    values become the numbers of regions that no condition divides
build        each query is filed under conditions of which one must hold, the rarest there are
kernels      the inner loops, in Numba
index        the index over these
"""
