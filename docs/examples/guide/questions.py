"""
Questions and answers
=====================

Any nodes given any others, observed or hidden, with exact probabilities.
"""

# %%
import pandas as pd

import latenttree as lt

patients = pd.read_csv("patients.csv")
model = lt.LatentTree(n_states=2, family={"visits": "poisson"}, random_state=0).fit(patients)

# %%
# Records
# -------
# A dict says what is known of one row, and no more. Hidden nodes may be asked and given too.
# Columns of the answer are in the order of `LatentTree.classes_of`.
model.predict_proba({"cough": "yes", "h0": 1}, query=["antibiotics", "h1"])

# %%
print(model.classes_of("antibiotics"))

# %%
# A value may be uncertain. Soft evidence weighs the labels:
model.predict_proba({"cough": {"yes": 0.8, "no": 0.2}}, query="antibiotics")

# %%
# Numbers are expected values; `LatentTree.impute` gives them with everything else of the row:
answer = model.impute({"cough": "yes", "temperature": 38.4})
{name: answer[name] for name in ("crp", "visits", "antibiotics")}

# %%
# Evidence that has probability zero is an error that names the row, and labels that training did
# not have are refused in records.
try:
    model.predict_proba({"cough": "sometimes"}, query="antibiotics")
except lt.errors.DataError as error:
    print(error)

# %%
# Tables
# ------
# The same for every row of a table, whatever its gaps: a column from all the others, or from those
# that ``evidence=`` names.
from_all = model.predict_proba(patients, query="antibiotics")
from_two = model.predict_proba(patients, query="antibiotics", evidence=["cough", "temperature"])
print(from_all[:2].round(3), from_two[:2].round(3), sep="\n")

# %%
# Columns are found by name, in any order. Labels that training did not have are missing values in a
# table, with a warning that names them; ``handle_unknown="error"`` refuses them.
#
# Hidden variables
# ----------------
# `LatentTree.transform` gives the probability of every state, `LatentTree.predict` the most
# probable one, ``joint=True`` the most probable states of all together.
print(model.predict(patients)[:3], model.predict(patients, joint=True)[:3], sep="\n")

# %%
# Distributions
# -------------
# What the model says without a row: of one node, of the two ends of an edge, of any two nodes.
print(model.marginal("h1").round(3))
print(model.conditional("cough", given="h1").round(3))
model.conditional_table("crp", given="retired").round(2)

# %%
model.plot_conditional("crp", "h1", figsize=(6, 3.2))

# %%
# How well does it predict?
# -------------------------
# Log-likelihood of each row, its mean, and criteria that count parameters (lower is better):
print(model.score_samples(patients)[:3].round(2))
print(
    f"{model.score(patients):.3f}, BIC {model.bic(patients):,.0f}, AIC {model.aic(patients):,.0f}"
)
