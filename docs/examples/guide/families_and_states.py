"""
Families and numbers of states
==============================

How columns are read, when to say so, and how many states hidden variables should have.
"""

# %%
# What a column is
# ----------------
# Every column has a *family*, the distribution of its values given the state of the hidden variable
# next to it. Families mix freely in one tree.
#
# =============== ================================== ==============================================
# ``family``      values                             taken by itself for
# =============== ================================== ==============================================
# ``categorical`` labels                             text, booleans, integers, categories; floats
#                                                    that are at most 20 whole numbers
# ``ordinal``     labels in an order; the structure  ordered categories; in a DataFrame or a file
#                 sees their ranks                   with names 3 to 11 evenly spaced whole numbers
#                                                    from 0 on, such as 1 to 5
# ``gaussian``    real numbers; for vectors also     floats, real blocks, integers with many
#                 ``_diagonal``, ``_spherical``,     different values
#                 ``_full``, ``_tied``
# ``poisson``     counts, or vectors of counts       on request
# ``multinomial`` a bag of counts                    groups and blocks of whole numbers
# ``multihot``    several codes at once, or none     groups and blocks of 0 and 1
# =============== ================================== ==============================================
#
# What a variable is depends on the input:
#
# =========================================== ==================================================
# input                                       a variable is
# =========================================== ==================================================
# DataFrame (pandas, polars)                  a column: categorical, boolean, integer, text, real
# array of integers, floats or text           a column
# SciPy sparse matrix                         a column, present or absent
# sparse or dense matrix with ``groups=``     a group of columns
# list or dict of blocks                      a block of ``n x d_i``; the ``d_i`` may differ
# path                                        a column of the file, a word, a taxon, a code
# `read_events <latenttree.data.read_events>` a code that is there or not, or a group of codes
# =========================================== ==================================================
import pandas as pd

import latenttree as lt

patients = pd.read_csv("patients.csv")
model = lt.LatentTree(n_states=2, random_state=0).fit(patients)
pd.Series(model.families_).to_frame("family").T.iloc[:, -6:]

# %%
# "visits" are counts, but gaps made them floats; that is said as a message, and put right by name:
print([text for text in model.diagnostics_.messages if "visits" in text])
counts = lt.LatentTree(n_states=2, family={"visits": "poisson"}, random_state=0).fit(patients)
counts.conditional_table("visits", given="h1").round(2)

# %%
# Rules of thumb: say ``poisson`` for counts without an upper end, ``ordinal`` for grades and dates
# in words, ``categorical`` for numbers that are names (a postcode). Skewed positive numbers
# (income, prices) fit better after a logarithm; the structure is learned from ranks in a Gaussian
# tree, and from the values otherwise.
#
# How columns were read is in ``families_`` and among the messages. What may not be meant is a
# warning too, `errors.DataWarning <latenttree.errors.DataWarning>`: fractions in up to 5% of the
# rows of a scale, which are rounded to its levels, columns like identifiers, numbers with two or
# three different values. Constant columns (unless ``drop_constant=True``), columns that only
# number the rows, infinite values and negative counts are refused before the work starts, with the
# value and the remedy.
#
# Rows may have weights: ``fit(X, sample_weight=w)`` counts a row of weight 3 as three such rows.
#
# Hidden states or hidden numbers
# -------------------------------
# ``hidden="gaussian"`` gives hidden variables real values instead of states: a linear model, like a
# factor analysis whose factors form a tree. Take it where everything is a number and what is asked
# are covariances: returns, sensors, measurements. States can be anything (a threshold, a U, a
# mixture) and are easier to name.
#
# How many states?
# ----------------
# ======================= =====================================================================
# ``n_states``            when
# ======================= =====================================================================
# ``"auto"`` (default)    as many as the likelihood of held-out rows supports: 2, 4, 16 or 64; two
#                         for words and codes in a sparse matrix. For densities and filling gaps
# ``2``                   a hidden variable is something that is there or not. Fastest, and
#                         easiest to read: words, diagnoses, yes and no
# ``"bic"``               only as many as pairs of columns show, chosen by BIC
# ``4``, ``16``, ...      known to be so (nucleotides), or for a density at a given price
# ======================= =====================================================================
#
# ``"auto"`` first learns a tree with as many states as pairs of columns show. From 200 rows on it
# then tries 4, 16 and 64 states (fewer where a pass over the rows would take long), and keeps more
# if held-out rows are clearly better described (`Diagnostics.states_tried` has the comparison).
# With more states the shape may change: an observed
# variable inside the tree gets a hidden copy from which it hangs, and a Chow-Liu tree with hidden
# variables in the places of the observed ones competes. No hidden variable has more states than its
# branches have configurations.
#
# What held-out rows said is among the messages, and `Diagnostics.hidden_states` has the number of
# each hidden variable.
automatic = lt.LatentTree(family={"visits": "poisson"}, random_state=0).fit(patients)
print(*automatic.diagnostics_.messages, sep="\n")
print(automatic.diagnostics_.hidden_states)

# %%
# These patients were made with two states, and two is what was found. On the pixels of digits more
# states describe held-out images better, because a pixel depends on more than one switch:
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

digits = (load_digits(as_frame=True).data > 8).astype(int)
train, test = train_test_split(digits, random_state=0)
options = {"drop_constant": True, "support": "model", "random_state": 0}
scores = {k: lt.LatentTree(n_states=k, **options).fit(train).score(test) for k in (2, 4, 16)}
from matplotlib import pyplot as plt

figure, axes = plt.subplots(figsize=(5, 3), layout="constrained")
pd.Series(scores).plot(ax=axes, marker="o", logx=True)
axes.set_xticks(list(scores), [str(k) for k in scores])
_ = axes.set(xlabel="states", ylabel="nats an image, held out")
