"""Structure + model + samples -> changes of the tree and of numbers of states that BIC supports.

In: a structure with doubtful edges and its refined model. Out: the structure and the model that the
criterion prefers. `stage.py` is the entry; read `local_search.py` first, then `region_proposals.py`
and `regions.py` (topologies of a region), and `node_states.py` with `neighbourhood.py` (states of a
node).
"""
