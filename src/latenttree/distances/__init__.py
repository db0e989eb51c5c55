"""Table -> information distances between all pairs of variables, and what is measured on them.

In: a `data.Table` and the number of states. Out: a `measure.Measured`: signed similarities with
their standard errors, the minimum spanning tree, the basis of every variable. Matrices of all
pairs where they fit in memory, else pair by pair. Read `measure.py` first, then `estimate.py`.
"""
