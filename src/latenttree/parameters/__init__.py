"""Tree + samples -> every conditional distribution, by moments.

In: a tree and a table. Out: `solving.Parameters`, a model with the condition of each hidden node,
or `gaussian.GaussianStart` for Gaussian trees. `stage.py` is the entry; read `estimate.py` first,
then `views.py` and `features.py` (three views of each hidden node), `decomposition.py` (moments of
views to factors) and `solving.py` (factors to a model). `cluster_start.py` begins models of more
states than moments determine, for `search/growth.py`.
"""
