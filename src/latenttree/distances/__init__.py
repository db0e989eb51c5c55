"""Table -> information distances between all pairs of variables, as similarities.

The distance is `d = -log |det C_ab|`, the similarity `rho = sign * exp(-d / n_directions)`. In: a
`data.Table` and the number of states. Out: `stage.Measured`: signed similarities with their
standard errors, the minimum spanning tree, the directions of every variable. Matrices of all pairs
are stored where they fit in memory; else each pair is counted when it is needed
(`correlation_source`, `counted_pairs`). Read `stage.py`
first, then `estimate.py` and `similarity.py`.
"""
