"""Table -> moments: sums over samples; each a pass that any engine can run.

With weights `w_i` and features `z_a` of variable a (its centred coordinates times `basis`), the
moment of two variables is `C_ab = sum_i w_i z_a(i) z_b(i)^T / sum_i w_i`.

In: a `data.Table`, often with directions `basis` `(coordinates, n_directions)`. Out: means of
coordinates (`coordinates`), directions (`subspace`), determinants of all pairs (`pairs`), counts of
0/1 variables (`packing`, `cooccurrence`), and moments of three views (`triples`), from which
parameters start. Read `coordinates.py` and `pairs.py` first.
"""

from latenttree.moments.subspace import (
    Subspaces,
    continued_subspaces,
    full_subspaces,
    pooled_subspaces,
)

__all__ = ["Subspaces", "continued_subspaces", "full_subspaces", "pooled_subspaces"]
