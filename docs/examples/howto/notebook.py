"""
Notebooks: models that show themselves
======================================

In a notebook a model, its tree, its topics and its diagnostics show themselves, and a fit that
takes longer than two seconds says what it is doing.
"""

# %%
# The data: made-up patients, :download:`patients.csv <../guide/patients.csv>`.
import pandas as pd

import latenttree as lt

patients = pd.read_csv("../guide/patients.csv")
asked = patients.drop(columns="chest_pain")
model = lt.LatentTree(family={"visits": "poisson"}, random_state=0).fit(asked)

# %%
# The name of the model at the end of a cell shows what was learned, the tree, and what is doubtful:
model

# %%
# Topics, and one hidden variable:
model.topics(n_words=5)

# %%
heart = model.tree_.names[model.tree_.neighbors("ejection")[0]]
model.describe(heart, n=4)

# %%
# A picture. ``color_by`` takes any column about the variables, here where a number comes from.
source = dict.fromkeys(asked, "asked") | dict.fromkeys(["cholesterol", "crp"], "laboratory")
source |= dict.fromkeys(["bmi", "ejection", "lung_capacity", "temperature"], "measured")
axes = model.plot(color_by=source, title="18 facts about 1,500 patients")

# %%
# Tables are DataFrames, of pandas or, after ``set_output(transform="polars")``, of polars:
model.edges().sort_values("support").head(4)

# %%
# The hidden variables beside something the model never saw, whether the chest hurts:
posterior = model.set_output(transform="pandas").transform(asked)
posterior.filter(like=heart).groupby(patients["chest_pain"]).mean().round(2)

# %%
# What the fit says of itself, as pictures:
panels = model.plot_diagnostics()

# %%
# Messages about data are warnings of their own class, which can be switched off.
import warnings

warnings.simplefilter("ignore", lt.errors.DataWarning)
