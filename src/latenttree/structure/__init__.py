"""Similarities -> a tree: MST groups, local trees, merging, sweeps, support.

In: `distances.stage.Measured`, with a `Similarity`. Out: `learn.Structure`: a `Tree` with a
standard error and a support for every edge. A tree under construction is a `builder.TreeBuilder`.
Read `learn.py` first: it is the list of steps. `stage.py` calls it, and `from_distances.py` is the
public function for a matrix of distances. `independence.py` finds the parts that are dependent,
`copies.py` the shapes for models of many states, `resampling.py` is the stage `estimate_support`.
"""
