"""
Returns: sectors, clusters and a covariance matrix
==================================================

Prices of companies move together because of things nobody observes: the market, a sector, the price
of oil. A Gaussian tree puts a hidden number where such a thing is, and gives a covariance matrix
with few parameters.
"""

# %%
# The data: daily returns of 30 made-up companies of five sectors, with heavy tails. Yours is a
# DataFrame of returns, a column for each company.
import numpy as np
import pandas as pd

SECTORS = {
    "banks": "Alder Birch Cedar Date Elm Fir",
    "energy": "Amber Basalt Coal Diorite Emery Flint",
    "software": "Arrow Bow Chord Drum Echo Flute",
    "health": "Aster Begonia Clover Daisy Erica Fern",
    "food": "Anise Basil Cumin Dill Endive Fennel",
}
rng = np.random.default_rng(1)
days = 750
market = rng.standard_t(4, days)
returns, sector_of = {}, {}
for sector, companies in SECTORS.items():
    common = 0.6 * market + rng.standard_t(4, days)
    for company in companies.split():
        sector_of[company] = sector
        returns[company] = 0.01 * (rng.uniform(0.5, 1) * common + rng.standard_t(4, days))
returns = pd.DataFrame(returns)
returns.iloc[:3, :6].round(3)

# %%
# The tree
# --------
# ``hidden="gaussian"`` asks for hidden numbers instead of states. The structure is learned from
# ranks, so that a crash does not decide it. The colours are the sectors, which the model never saw.
import latenttree as lt

model = lt.LatentTree(hidden="gaussian", random_state=0).fit(returns)
model.plot(color_by=sector_of, title="750 days of 30 companies")

# %%
# Clusters
# --------
# Five groups cut from the tree, beside the true sectors:
groups = model.variable_groups(5)
pd.crosstab(groups, pd.Series(sector_of, name="sector"))

# %%
# The same tree serves where a hierarchy is asked for, such as the dendrograms of SciPy or
# hierarchical risk parity:
from matplotlib import pyplot as plt
from scipy.cluster.hierarchy import dendrogram

figure, axes = plt.subplots(figsize=(9, 3.5), layout="constrained")
tree = model.tree_
leaves = list(tree.observed_names)
_ = dendrogram(tree.to_linkage(), labels=leaves, ax=axes, color_threshold=0, leaf_rotation=90)

# %%
# A covariance matrix for a portfolio
# -----------------------------------
# `LatentTree.covariance_` is what the tree implies: positive definite, from 30 lengths and not from
# 435 correlations. Minimum-variance weights from a quarter, half a year and a year, judged on all
# other days; the mean of five such windows for the covariance of the sample, shrunk, and of the
# tree:
from sklearn.covariance import LedoitWolf


def risk(covariance, days):
    weights = np.linalg.solve(covariance, np.ones(30))
    return float((days @ (weights / weights.sum())).std())


quick = {"min_support": 0, "refine": None, "search": False, "support": "model", "random_state": 0}
rows = {}
for length in (62, 125, 250):
    found = []
    for start in range(0, 500, 100):
        window = returns.iloc[start : start + length]
        others = returns.drop(index=window.index)
        tree = lt.LatentTree(hidden="gaussian", **quick).fit(window)
        estimates = window.cov(), LedoitWolf().fit(window).covariance_, tree.covariance_
        found.append([risk(estimate, others) for estimate in estimates])
    rows[f"{length} days"] = np.mean(found, axis=0)
pd.DataFrame(rows, index=["sample", "Ledoit and Wolf", "tree"]).round(5)

# %%
# With ``min_support=0`` the tree keeps edges that so few days cannot prove: they cost little where
# covariances are wanted, and sectors stay apart.
#
# Correlations in the order of the tree: implied above the diagonal, observed below.
model.plot_heatmap(returns)

# %%
# What to expect of the others on a day on which two banks lose 5%:
day = model.impute({"Alder": -0.05, "Birch": -0.05})
pd.Series(day).astype(float).sort_values().head(8).round(4)
