"""Structure + model + samples -> changes of the tree and of numbers of states that samples support.

In: a structure with doubtful edges and its refined model. Out: the structure and the model that the
criterion prefers. `stage.py` is the entry; read `driver.py` first: the rounds that all edits share.
`topology_edits.py` (other topologies of a region) and `state_edits.py` (fewer states of a node) are
the kinds of edits; `regions.py` gathers the messages that they are fitted to. `growth.py` is
the stage `grow`: more states than moments determine, and other shapes of the tree, compared on
held-out samples. `annotation.py` gives the final tree the signs and the support of its edges.
"""
