"""
The idea in pictures
====================

What a latent tree model is, and how it can be found, without a formula. :doc:`/mathematics` has the
formulas.
"""

# %%
# Things go together for a reason
# -------------------------------
# Coughing and fever go together, and so do an expensive car and a large house. One does not cause
# the other: an infection is behind the first two, money behind the others. What is behind is a
# **hidden variable**: nobody wrote it down, but its traces are in every column that it influences.
#
# Knowing the hidden variable, nothing more is to be learned about the cough from the fever: among
# the infected the two are unrelated, and so they are among the others. That is how a hidden
# variable can be recognised.

# sphinx_gallery_start_ignore
import numpy as np
from matplotlib import pyplot as plt

import latenttree as lt
from latenttree.plots.tree_figure import plot_tree

rng = np.random.default_rng(0)
ill = rng.random(400) < 0.4
fever = rng.normal(np.where(ill, 38.6, 36.8), 0.4)
cough = rng.normal(np.where(ill, 25, 5), 5).clip(0)
shown = {"everybody": ill | True, "the infected": ill, "the others": ~ill}
figure, panels = plt.subplots(
    1, 3, figsize=(10, 3.2), sharex=True, sharey=True, layout="constrained"
)
for axes, (title, rows) in zip(panels, shown.items(), strict=True):
    axes.scatter(fever[rows], cough[rows], s=8, c=np.where(ill[rows], "tab:orange", "tab:blue"))
    r = np.corrcoef(fever[rows], cough[rows])[0, 1]
    axes.set(title=f"{title}: correlation {abs(r):.2f}", xlabel="temperature")
_ = panels[0].set_ylabel("coughs an hour")
# sphinx_gallery_end_ignore

# %%
# Hidden variables hang together too
# ----------------------------------
# The infection is more common among the old, and so are glasses. With hidden variables between
# hidden variables the whole table hangs together in a **tree**: between any two columns there is
# exactly one path, and dependence flows along paths only.

# sphinx_gallery_start_ignore
tree = lt.Tree.build(
    ["cough", "fever", "antibiotics", "glasses", "hearing aid", "retired", "bmi", "diabetes"],
    [(0, 8), (1, 8), (2, 8), (3, 9), (4, 9), (5, 9), (6, 10), (7, 10), (8, 9), (9, 10)],
    np.ones(10),
).rename({8: "infection", 9: "age", 10: "diet"})
_ = plot_tree(tree, "top_down", hidden_labels=True, root="age", figsize=(8, 4))
# sphinx_gallery_end_ignore

# %%
# How can a tree be found whose inner nodes nobody saw?
# -----------------------------------------------------
# Dependence fades along a path: the longer it is, the weaker two columns depend on each other.
# Measured in the right unit, the **distances** of a path add up like kilometres. So the table gives
# a list of distances between its columns, like the distances between towns, and the task is to draw
# the road map, crossroads included.
#
# Four towns are enough to see how. Of three ways to pair them, one has a smaller sum than the other
# two, which are equal, and the difference is twice the length of the road in the middle. Here
# ``ab`` and ``cd`` are 2 apart and all other pairs 5: 2 + 2 = 4 against 5 + 5 = 10, so the middle
# is 3 long.
D = [[0, 2, 5, 5], [2, 0, 5, 5], [5, 5, 0, 2], [5, 5, 2, 0]]
towns = lt.tree_from_distances(D, names=list("abcd"))

# sphinx_gallery_start_ignore
places = {"a": (-2.2, 0.7), "b": (-2.2, -0.7), "c": (2.2, 0.7), "d": (2.2, -0.7)}
places |= {"h0": (-1.5, 0), "h1": (1.5, 0)}
figure, axes = plt.subplots(figsize=(6, 2.2), layout="constrained")
for (u, v), length in zip(towns.edges, towns.lengths, strict=True):
    (x0, y0), (x1, y1) = places[towns.names[u]], places[towns.names[v]]
    axes.plot([x0, x1], [y0, y1], color="grey", zorder=1)
    axes.text((x0 + x1) / 2, (y0 + y1) / 2 + 0.12, f"{length:g}", ha="center")
for name, (x, y) in places.items():
    hidden = name.startswith("h")
    axes.scatter(x, y, s=40 if hidden else 340, color="dimgrey" if hidden else "tab:blue")
    axes.text(x, y, "" if hidden else name, ha="center", va="center", color="white")
axes.set_axis_off()
# sphinx_gallery_end_ignore

# %%
# From a table the distances come with errors, and far columns are measured worst. The method starts
# with columns that are near to each other, puts crossroads between them, joins the pieces, and goes
# over each region again until nothing improves. A road that is shorter than its own error is left
# out: better a crossroads with four roads than a guess.
#
# From the tree to probabilities
# ------------------------------
# Once it is known which columns hang around a hidden variable, three of them betray what it is: how
# many states it has, how often each occurs, and what each column looks like in each state. The
# likelihood of all rows then improves all of these together.
#
# Here is all of it at once, on a table made from the tree above, of which the method sees nothing
# but the columns:
made = lt.datasets.make_latent_tree(8, tree=tree, n_samples=5_000, random_state=0)
model = lt.LatentTree(n_states=2, random_state=0).fit(made.X)
axes = model.plot(
    labels=dict(zip(model.tree_.observed_names, tree.observed_names, strict=True)),
    title="Found in 5,000 rows",
)

# %%
# What it is good for
# -------------------
# - **Reading**: hidden variables are topics of words, scales of a questionnaire, syndromes of
#   diagnoses, sectors of companies, ancestors of species.
# - **Asking**: any column given any others, with exact probabilities, however many are missing.
# - **Grouping**: the tree is a hierarchy of the columns that no threshold had to cut.
#
# What a tree cannot be
# ---------------------
# A tree has one path between two columns. Where two reasons cross (an infection *and* smoking make
# people cough), it takes the stronger one and spreads the rest over its neighbours. A fit says how
# much of the dependence is lost in this way, and where: :doc:`support_and_misfit`.
