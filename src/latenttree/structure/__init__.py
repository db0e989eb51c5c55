"""Similarities -> a tree: MST groups, local trees, merging, sweeps, support.

In: `distances.similarity.Similarity`. Out: `learn.Structure`: a `Tree` with a standard error and a
support for every edge. Read `learn.py` first: it is the list of steps.
"""
