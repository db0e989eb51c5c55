"""
Large data
==========

Files that do not fit in memory, many rows, many columns, many categories, and batches.
"""

# %%
# Paths
# -----
# ``fit`` takes a path, and ``memory_limit`` says how much the process may use. Parquet, CSV,
# ``.npy``, ``.npz``, docword and FASTA files that do not fit are read part by part and lie in
# mapped files for the fit, as do arrays from ``np.load(..., mmap_mode="r")``. A small one will do
# to show it:
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

import latenttree as lt

folder = Path(tempfile.mkdtemp())
data = lt.datasets.make_latent_tree(60, n_samples=50_000, random_state=0)
pd.DataFrame(data.X, columns=data.tree.observed_names).to_parquet(folder / "table.parquet")
model = lt.LatentTree(n_states=2, memory_limit="2GiB", random_state=0)
model.fit(folder / "table.parquet")
print(f"{model.diagnostics_.peak_memory / 2**20:.0f} MiB at most")

# %%
# A limit that is too small is refused before the work begins, with the smallest that works:
try:
    lt.LatentTree(memory_limit="50MiB").fit(folder / "table.parquet")
except lt.errors.DataError as error:
    print(error)

# %%
# Batches
# -------
# `LatentTree.partial_fit` again and again, then any question: the result is that of ``fit`` on all
# rows together. Rows are kept in compact form, one or two bytes for a category.
batched = lt.LatentTree(n_states=2, random_state=0)
for batch in np.array_split(data.X[:5000], 5):
    batched.partial_fit(batch)
whole = lt.LatentTree(n_states=2, random_state=0).fit(data.X[:5000])
print(batched.tree_ == whole.tree_, batched.score(data.X) == whole.score(data.X))

# %%
# Where the time goes
# -------------------
# ``verbose=True`` shows a fit at work; `Diagnostics.stage_seconds` has the seconds of every stage.
from matplotlib import pyplot as plt

figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
seconds = pd.Series(model.diagnostics_.stage_seconds)
seconds.plot.barh(ax=axes, xlabel="seconds, 60 columns, 50,000 rows")

# %%
# What grows how
# --------------
# - **Many rows**: moments are counted in blocks, and from 65,536 rows on EM makes one pass in
#   batches and an exact step over all; a tighter ``tol`` asks for more passes.
# - **Many columns**: where the matrices of all pairs of 0/1 columns do not fit, pairs are counted
#   when they are needed. The spanning tree is still exact. A sparse table of 300,000 rows and
#   100,000 columns fits in 8 GiB.
# - **Many categories**: a variable of a million categories costs what is stored of it; nothing is
#   as large as categories times categories.
# - **Threads**: ``n_jobs``. The tree is the same on any number of them.
#
# What to switch off, when only one thing is wanted: ``support="model"`` leaves out the resampling,
# ``search=False`` the local improvements, ``refine=None`` EM, ``n_states=2`` the choice of the
# number of states. :doc:`/benchmarks` has times of all sizes.
#
# The first fit on a machine compiles its kernels, about half a minute, and says so. ``latenttree
# compile`` does it ahead, for an image or a class room.
