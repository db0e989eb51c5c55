"""
Research: known trees, exact distances, rivals
==============================================

For work on graphical models themselves: data from a tree that is known, each half of the work on
its own, other methods on the same distances, and errors against the truth.
"""

# %%
# A known truth
# -------------
# A random tree of 30 variables with 3 hidden states and 5 categories, uneven edges, and a tenth of
# the values missing.
import latenttree as lt

truth = lt.datasets.make_latent_tree(
    30, 3, 5, shape="random", edge_length=(0.3, 1.0), missing=0.1, n_samples=20_000, random_state=1
)
model = lt.LatentTree(n_states=3, random_state=0).fit(truth.X)
print("Robinson-Foulds distance", lt.metrics.robinson_foulds(truth, model))
print("structure error", lt.metrics.structure_error(truth, model))
print(f"error of the conditional distributions {lt.metrics.parameter_error(truth, model):.4f}")

# %%
# Structure alone
# ---------------
# From exact distances the tree comes back exactly, whatever its shape:
exact = truth.tree.path_lengths()
tree = lt.tree_from_distances(exact, names=truth.tree.observed_names)
print(tree.same_topology(truth.tree), abs(tree.path_lengths() - exact).max() < 1e-9)

# %%
# From data, with the standard error of every distance:
D, errors_of_D = lt.information_distances(truth.X, n_states=3)
estimated = lt.tree_from_distances(D, errors_of_D, names=truth.tree.observed_names)
print("Robinson-Foulds distance", lt.metrics.robinson_foulds(truth.tree, estimated))

# %%
# Other methods on the same distances
# -----------------------------------
import pandas as pd

few = lt.datasets.make_latent_tree(30, 3, 5, tree=truth.tree, n_samples=2_000, random_state=2)
errors = {}
for method in ("lrg", "neighbor_joining", "clrg", "clnj", "recursive_grouping", "chow_liu"):
    rival = lt.LatentTree(n_states=3, structure=method, support="model", random_state=0)
    errors[method] = lt.metrics.robinson_foulds(few, rival.fit(few.X), normalized=True)
pd.Series(errors, name="normalised Robinson-Foulds distance").round(2).to_frame()

# %%
# Parameters alone
# ----------------
# On a tree that is given: a `Tree`, Newick text, or what `tree_from_distances` returned.
given = lt.LatentTree(n_states=3, structure=few.tree, random_state=0).fit(few.X)
print(f"{lt.metrics.parameter_error(few, given):.3f}")

# %%
# Moments alone, and moments refined by EM:
moments = lt.LatentTree(n_states=3, structure=few.tree, refine=None, random_state=0).fit(few.X)
print(f"{moments.score(few.X):.4f} -> {given.score(few.X):.4f} nats a sample")

# %%
# How errors fall with samples
# ----------------------------
# The first rows of one sample, by both halves.
from matplotlib import pyplot as plt

sizes = [500, 1_000, 2_000, 5_000, 10_000, 20_000]
structure, parameters = [], []
for n in sizes:
    fitted = lt.LatentTree(n_states=3, support="model", random_state=0).fit(truth.X[:n])
    structure.append(lt.metrics.robinson_foulds(truth, fitted, normalized=True))
    fixed = lt.LatentTree(n_states=3, structure=truth.tree, random_state=0).fit(truth.X[:n])
    parameters.append(lt.metrics.parameter_error(truth, fixed))
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.2), layout="constrained")
_ = left.semilogx(sizes, structure, "o-")
_ = left.set(xlabel="samples", ylabel="normalised Robinson-Foulds distance")
_ = right.loglog(sizes, parameters, "o-", label="model on the true tree")
_ = right.loglog(
    sizes, parameters[-1] * (sizes[-1] / pd.Series(sizes)) ** 0.5, ":", label="slope -1/2"
)
_ = right.set(xlabel="samples", ylabel="error of the conditionals")
_ = right.legend()
