"""
Five minutes
============

One table, one fit, and what to do with the model. Install the library with
``pip install "latenttree[plot]" pandas``; in a checkout ``pip install ".[plot]" pandas``.
"""

# %%
# **A table.** 1,500 made-up patients (:download:`patients.csv <patients.csv>`): numbers, counts,
# answers with yes and no, and some empty cells.
import pandas as pd

patients = pd.read_csv("patients.csv")
patients.iloc[:3, :8]

# %%
# **Learn.** Nothing has to be said about the shape of the tree or the number of hidden variables.
# Columns are read as they are; that visits are counts is said here because gaps make them floats.
import latenttree as lt

model = lt.LatentTree(family={"visits": "poisson"}, random_state=0).fit(patients)
model.tree_

# %%
# **Look.** Names are the columns; the grey dots between them are the hidden variables that were
# found. A wide edge would come back in other samples like these, a dashed one is a negative
# dependence. The colours are five groups of variables, cut from the tree.
model.plot(color_by=model.variable_groups(5, signed=False))

# %%
# **Read a hidden variable.** `LatentTree.topics` lists the ones to read first, and
# `LatentTree.describe` shows one of them: how many rows are in each state, and the columns that
# tell most about it.
print(model.topics(n_words=5))

# %%
infection = model.topics().levels[0][1].name
model.describe(infection, n=5)

# %%
# **Give it a name**, which all answers, pictures and files use from then on.
_ = model.name(infection, "infection")

# %%
# **Ask.** Any variables given any others, exactly. A record says what is known, and no more.
model.predict_proba({"cough": "yes", "age": 70}, query=["infection", "antibiotics"])

# %%
# **Fill gaps, score rows, draw new ones.**
model.impute(patients).iloc[:3, :8]

# %%
print(f"{model.score(patients):.2f} nats a row")
drawn, hidden = model.sample(2, random_state=0)
drawn.iloc[:, :8]

# %%
# **How sure is it?** What the fit says of itself, in sentences and numbers.
# :doc:`support_and_misfit` explains them.
print(model.diagnostics_)

# %%
# **Keep it.** The file holds the whole model; reading it executes nothing. `LatentTree.export`
# writes what other programs read, and `LatentTree.to_html` one page that colleagues can open.
import tempfile
from pathlib import Path

folder = Path(tempfile.mkdtemp())
model.save(folder / "patients.ltree")
model.export(folder / "patients.graphml")
model.to_html(folder / "patients.html")
lt.load(folder / "patients.ltree")
