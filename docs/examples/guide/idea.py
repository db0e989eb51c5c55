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
# Knowing the hidden variable, nothing more is to be learned about the cough from the fever. That is
# how a hidden variable can be recognised, and it is all that the method assumes.
import numpy as np
from matplotlib import pyplot as plt

rng = np.random.default_rng(0)
ill = rng.random(400) < 0.4
fever = rng.normal(np.where(ill, 38.6, 36.8), 0.4)
cough = rng.normal(np.where(ill, 25, 5), 5).clip(0)
figure, panels = plt.subplots(
    1, 3, figsize=(10, 3.2), sharex=True, sharey=True, layout="constrained"
)
for axes, rows, title in zip(
    panels, (ill | True, ill, ~ill), ("everybody", "the infected", "the others"), strict=True
):
    axes.scatter(fever[rows], cough[rows], s=8, c=np.where(ill[rows], "tab:orange", "tab:blue"))
    r = np.corrcoef(fever[rows], cough[rows])[0, 1]
    axes.set(title=f"{title}: correlation {r:.2f}", xlabel="temperature")
_ = panels[0].set_ylabel("coughs an hour")

# %%
# Hidden variables hang together too
# ----------------------------------
# The infection is more common among the old, and so are glasses. With hidden variables between
# hidden variables the whole table hangs together in a **tree**: between any two columns there is
# exactly one path, and dependence flows along paths only.
import latenttree as lt

tree = lt.Tree.build(
    "cough fever antibiotics glasses hearing_aid retired bmi diabetes".split(),
    [(0, 8), (1, 8), (2, 8), (3, 9), (4, 9), (5, 9), (6, 10), (7, 10), (8, 9), (9, 10)],
    np.ones(10),
).rename({8: "infection", 9: "age", 10: "diet"})
print(tree.draw())

# %%
# How can a tree be found whose inner nodes nobody saw?
# -----------------------------------------------------
# Dependence fades along a path: the longer it is, the weaker two columns depend on each other.
# Measured in the right unit, the **distances** of a path add up like kilometres. So the table gives
# a list of distances between its columns, like the distances between towns, and the task is to draw
# the road map, crossroads included.
#
# Four towns are enough to see how. Of three ways to pair them, one has shorter sums than the other
# two, which are equal. The difference is twice the length of the road in the middle.
D = {"ab": 2, "cd": 2, "ac": 5, "bd": 5, "ad": 5, "bc": 5}
for first, second in (("ab", "cd"), ("ac", "bd"), ("ad", "bc")):
    print(f"{first} + {second} = {D[first] + D[second]}")

matrix = [[0, 2, 5, 5], [2, 0, 5, 5], [5, 5, 0, 2], [5, 5, 2, 0]]
print(lt.tree_from_distances(matrix, names=list("abcd")).draw(lengths=True))

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
