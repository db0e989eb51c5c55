"""
Health records: diagnoses that go together
==========================================

A health record is a list of events: who, which code, when. The tree groups codes into syndromes,
and answers how much more likely one diagnosis is given another.
"""

# %%
# The data: events of 4,000 made-up people with 20 diagnoses. Yours is a DataFrame or a file with a
# column for the person and one for the code; a column for the time is optional.
import numpy as np
import pandas as pd

SYNDROMES = {
    "metabolic": "E11 diabetes|E66 obesity|E78 high lipids|I10 hypertension|G47 sleep apnoea",
    "heart": "I25 coronary disease|I50 heart failure|I48 fibrillation|I21 infarction|R07 angina",
    "lungs": "J44 COPD|J45 asthma|J18 pneumonia|F17 tobacco|R05 cough",
    "mood": "F32 depression|F41 anxiety|G43 migraine|F51 insomnia|R53 fatigue",
}
rng = np.random.default_rng(0)
n = 4000
frail = rng.random(n) < 0.3
metabolic = rng.random(n) < np.where(frail, 0.6, 0.15)
present = {"metabolic": metabolic, "heart": rng.random(n) < np.where(metabolic, 0.35, 0.08)}
present |= {"lungs": rng.random(n) < np.where(frail, 0.45, 0.08)}
present |= {"mood": rng.random(n) < np.where(frail, 0.5, 0.12)}
events = []
for syndrome, codes in SYNDROMES.items():
    for code in codes.split("|"):
        often, seldom = rng.uniform(0.3, 0.6), rng.uniform(0.01, 0.05)
        has = rng.random(n) < np.where(present[syndrome], often, seldom)
        events += [(f"P{i:04d}", code) for i in np.flatnonzero(has)]
events = pd.DataFrame(events, columns=["person", "code"]).sample(frac=1, random_state=0)
events.head(3)

# %%
# Syndromes
# ---------
# `data.read_events <latenttree.data.read_events>` makes a sparse table of people and codes, and
# counts what it leaves out. People without any event are in no row of the file; with
# ``all_samples`` they count, and without them diagnoses would seem to exclude each other.
import latenttree as lt

people = [f"P{i:04d}" for i in range(n)]
records = lt.data.read_events(events, sample="person", code="code", all_samples=people)
model = lt.LatentTree(random_state=0).fit(records)
model.name_hidden(n_words=1)
model.plot(color_by=model.variable_groups(4), max_label=24)

# %%
# Relative risks
# --------------
# A hidden variable read as a syndrome: how much more likely each diagnosis is with it than without.
h = model.topics(level=4).levels[0][0].name
model.relative_risks(h, n_variables=6).round(3)

# %%
# The same between two diagnoses. Every variable may be asked about every other:
model.relative_risks("E11 diabetes", n_variables=5).round(3)

# %%
# With intervals, from people drawn again and again:
model.intervals("I50 heart failure", "E11 diabetes", records, n_resamples=50).round(4)

# %%
# One person
# ----------
# What a record says is used, what it does not say is open. The probability of heart failure
# where only a cough is ruled out, and with two diagnoses:
known = {"E11 diabetes": 1, "I25 coronary disease": 1}
for record in ({"R05 cough": 0}, known):
    probability = model.predict_proba(record, query="I50 heart failure")
    print(record, np.round(probability, 3))

# %%
model.plot_conditional("I50 heart failure", "I25 coronary disease")

# %%
# New people, with codes that training did not have left out:
new = pd.DataFrame({"person": ["A", "A", "B"], "code": ["J44 COPD", "F17 tobacco", "R53 fatigue"]})
new = lt.data.read_events(new, sample="person", code="code", codes=model)
model.set_output(transform="pandas").transform(new).filter(like="=1").round(2)
