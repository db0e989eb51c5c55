"""
Questionnaires: scales, items and reliability
=============================================

A questionnaire measures a few traits by many items, some of them reversed. The tree finds which
items belong together, so that nobody has to say how many factors there are.
"""

# %%
# The data: 1,200 people answer 25 items from 1 to 5. Five traits lie behind the answers, two items
# of each are worded the other way round, traits of one person are correlated, and 3% of the answers
# are missing. Yours come from
# ``pd.read_csv`` or ``pd.read_spss``.
import numpy as np
import pandas as pd

TRAITS = {
    "extraversion": "talkative outgoing energetic reserved quiet",
    "agreeableness": "trusting helpful forgiving rude cold",
    "conscientiousness": "thorough organised punctual careless lazy",
    "neuroticism": "worried tense moody calm relaxed",
    "openness": "curious inventive artistic conventional practical",
}
rng = np.random.default_rng(0)
answers, mood = {}, rng.normal(size=1200)
for words in TRAITS.values():
    trait = 0.5 * mood + 0.85 * rng.normal(size=1200)
    for i, word in enumerate(words.split()):
        direction = 1 if i < 3 else -1  # the last two items are reversed
        felt = direction * 0.7 * trait + rng.normal(0, 0.7, 1200)
        answers[word] = np.digitize(felt, [-1.2, -0.4, 0.4, 1.2]) + 1
survey = pd.DataFrame(answers, dtype=float)
survey = survey.mask(rng.random(survey.shape) < 0.03)
survey.head(3)

# %%
# Scales without asking for five
# ------------------------------
# Whole numbers from 1 to 5 are read as ordered answers, gaps as missing.
import latenttree as lt

model = lt.LatentTree(random_state=0).fit(survey)
model.name_hidden()
groups = model.variable_groups(5, signed=False)
model.plot(color_by=groups, title="25 items")

# %%
# Dashed edges are negative: "reserved" and "quiet" hang from the same hidden variable as
# "talkative", turned round. With ``signed=False`` both ends of a scale are in one group.
scales = model.variable_groups(5, signed=False)
for label, items in scales.groupby(scales).groups.items():
    print(label, *items)

# %%
# How reliable are the scales?
# ----------------------------
# Cronbach's alpha and McDonald's omega of each group; reversed items are turned round first.
model.reliability(survey, scales)

# %%
# The items of one scale, with their loadings and what alpha would be without them:
extraversion = scales.index[scales == scales["talkative"]]
model.item_table(list(extraversion), survey)

# %%
# Does a tree describe these data?
# --------------------------------
# The correlations that the tree implies (above the diagonal) beside those observed (below), in the
# order of the tree. Where the halves differ, the tree is wrong; `Diagnostics.fit` says how much.
model.plot_heatmap(survey, title="Implied above, observed below")

# %%
fit = model.diagnostics_.fit
print(f"SRMR {fit.srmr:.3f}, CFI {fit.cfi:.3f}, RMSEA {fit.rmsea:.3f}")

# %%
# Scores of the people on each scale, for other analyses, gaps included:
scores = model.set_output(transform="pandas").transform(survey)
scores.iloc[:3, :6].round(2)
