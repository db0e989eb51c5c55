"""
Missing data
============

Gaps may be anywhere: in training, in new rows, in whole columns of a question. Nothing has to be
filled or dropped before.
"""

# %%
# What counts as missing: NaN, None, ``pd.NA``, empty cells of files, gaps of alignments; in new
# tables also labels that training did not have (``handle_unknown="missing"``, with a warning).
import numpy as np
import pandas as pd
from matplotlib import pyplot as plt

import latenttree as lt

truth = lt.datasets.make_latent_tree(20, 2, 3, n_samples=4000, random_state=0)
X = truth.X.astype(float)
rng = np.random.default_rng(0)
rows = []
for share in (0, 0.1, 0.3, 0.5, 0.7):
    gaps = np.where(rng.random(X.shape) < share, np.nan, X)
    model = lt.LatentTree(n_states=2, support="model", random_state=0).fit(gaps)
    complete = int((~np.isnan(gaps)).all(axis=1).sum())
    wrong = lt.metrics.robinson_foulds(truth, model)
    rows.append((f"{share:.0%}", complete, wrong, lt.metrics.parameter_error(truth, model)))
pd.DataFrame(rows, columns=["missing", "complete rows", "wrong splits", "parameter error"]).round(3)

# %%
# With 30% missing not one row in a thousand is complete, and at most one split of the tree is off.
# Every moment
# is taken over the rows that have its columns, every standard error knows how many these are, and
# likelihoods sum over what is missing.
#
# Filling gaps
# ------------
# `LatentTree.impute` takes the expectation of numbers and the most probable label. It can also
# draw, so that what is filled varies as much as what was seen, and return the distributions
# themselves.
patients = pd.read_csv("patients.csv")
model = lt.LatentTree(n_states=2, family={"visits": "poisson"}, random_state=0).fit(patients)
filled, proba = model.impute(patients, return_proba=True)
print(int(patients.isna().sum().sum()), "gaps,", int(filled.isna().sum().sum()), "left")
print(proba["cough"].rows[:5], proba["cough"].proba[:5].round(2), sep="\n")

# %%
# How well? Cells that are known are hidden from the model, and compared. Means and modes of the
# columns are what one would write without a model.
hidden = (rng.random(patients.shape) < 0.2) & patients.notna().to_numpy()
guess = model.impute(patients.mask(hidden))
rows = []
for place, name in enumerate(patients):
    true, found = (frame.loc[hidden[:, place], name] for frame in (patients, guess))
    if true.dtype.kind == "f":
        typical = (true - patients[name].mean()).abs().mean()
        error = (true - found.astype(float)).abs().mean() / typical
    else:
        typical = (true != patients[name].mode()[0]).mean()
        error = (true != found).mean() / typical
    rows.append((name, error))
table = pd.DataFrame(rows, columns=["column", "error, relative to mean or mode"])
table = table.set_index("column").sort_values(table.columns[1])
figure, axes = plt.subplots(figsize=(7, 4.5), layout="constrained")
table.plot.barh(ax=axes, legend=False, xlabel=table.columns[0])
_ = axes.axvline(1, color="grey", linestyle=":")

# %%
# Multiple imputation: draw several tables, analyse each, and combine.
draws = [model.impute(patients, method="sample", random_state=seed) for seed in range(5)]
print([round(drawn["crp"].astype(float).mean(), 2) for drawn in draws])

# %%
# When it is right
# ----------------
# All of this is right where values are missing completely at random, and the likelihood also where
# what is missing depends on what was seen. Where whether a value is missing depends on the value
# itself (the ill do not come), the model describes the values that were seen. A column that says
# whether something was measured may help:
measured = patients.assign(crp_measured=patients["crp"].notna())
with_flag = lt.LatentTree(n_states=2, family={"visits": "poisson"}, random_state=0).fit(measured)
print("crp_measured" in with_flag.diagnostics_.independent)

# %%
# Here it depends on nothing: the gaps of this table are random.
