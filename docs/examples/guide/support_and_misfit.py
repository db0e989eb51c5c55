"""
Support and misfit: how far to believe a tree
=============================================

Two questions, two answers. Would the tree come back in other samples? That is its *support*. Is a
tree a good picture of these data at all? That is its *fit*. A tree may have either without the
other.
"""

# %%
# Support
# -------
# Trees are learned again from random thirds of the rows, and each edge gets the probability that it
# comes back in other samples like these. 1,500 made-up patients and the first 150 of them:
import matplotlib.pyplot as plt
import pandas as pd

import latenttree as lt

patients = pd.read_csv("patients.csv")
fits = {
    n: lt.LatentTree(n_states=2, family={"visits": "poisson"}, random_state=0).fit(patients[:n])
    for n in (150, 1500)
}
figure, panels = plt.subplots(1, 2, figsize=(12, 6), layout="constrained")
for axes, (n, model) in zip(panels, fits.items(), strict=True):
    model.plot(ax=axes, min_support=0, title=f"{n:,} patients, all edges")

# %%
# Wide edges can be relied on, thin ones not. As a table, the weakest first:
edges = fits[150].edges()
edges[edges["inner"]].sort_values("support").round(2)

# %%
# Pictures and ``show`` leave out inner edges of support below 0.5, and say how many:
axes = fits[150].plot(title="150 patients, edges of support 0.5 and more")

# %%
# The model keeps them, because it describes new rows better with them or at least no worse.
# `Tree.collapse` gives the tree without edges below any support.
print(fits[150].tree_.collapse(0.9).draw())

# %%
# Ways to compute it:
#
# =========================== ======================================================================
# ``support``                 what it is
# =========================== ======================================================================
# ``"auto"`` (default)        ``"model"`` where the correlations of pairs are as the tree says, up
#                             to sampling noise (`Diagnostics.residual` up to 1.4), as in simulated
#                             data; ``"subsample"`` elsewhere
# ``"subsample"``             the probability that an edge comes back in other samples, by trees of
#                             random thirds. With 25 of them a support near .5 is known to about .1
# ``"bootstrap"``             how often it is in trees of as many rows, drawn with replacement; what
#                             phylogenetics reports. Takes longer
# ``"model"``                 the posterior probability of the edge if the data come from a tree.
#                             Free, and too high where they do not
# =========================== ======================================================================
#
# ``n_resamples`` is the number of trees that are learned. `Diagnostics.samples_needed` says how
# many rows would put the weakest edge beyond doubt.
#
# Fit
# ---
# `Diagnostics.fit` compares the dependence of all pairs of columns with what the tree implies. Add
# a column that depends on two hidden variables at once, and it shows:
crossed = patients.assign(
    risk=(patients["bmi"] - patients["bmi"].mean()) / patients["bmi"].std()
    + (patients["crp"] - patients["crp"].mean()) / patients["crp"].std()
)
twice = lt.LatentTree(n_states=2, family={"visits": "poisson"}, random_state=0).fit(crossed)
pd.DataFrame(
    {
        "explained": [m.diagnostics_.fit.explained for m in (fits[1500], twice)],
        "SRMR": [m.diagnostics_.fit.srmr for m in (fits[1500], twice)],
    },
    index=["a tree", "with a column of two parents"],
).round(3)

# %%
# The pairs that the tree explains worst say where:
for pair in twice.diagnostics_.fit.worst[:4]:
    print(pair)

# %%
# ``plot_heatmap`` shows all pairs: implied above the diagonal, observed below.
axes = twice.plot_heatmap(crossed)

# %%
# =============================== ==================================================================
# number                          read it as
# =============================== ==================================================================
# ``explained``                   share of the pairwise dependence that the tree explains; 1 is all
# ``srmr``                        how far implied correlations are off, root mean square; below 0.05
#                                 is good, above 0.1 poor
# ``cfi``, ``rmsea``              as in structural equation models: above 0.95, below 0.06 are good
# ``worst``                       the pairs with the largest difference
# =============================== ==================================================================
#
# What to do about a poor fit: leave out or join the columns it names (sums of others, the same
# thing measured twice), ask for more states, or take the tree as what it is, a summary of the
# strongest paths. Answers are exact for the model; they are as good as the model is.
