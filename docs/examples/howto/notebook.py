"""
Notebooks: models that show themselves
======================================

In a notebook a model, its tree, its topics and its diagnostics show themselves, and a fit that
takes longer than two seconds says what it is doing.
"""

# %%
# The data: the breast cancer measurements of scikit-learn, ten features of cell nuclei with their
# mean, error and worst value.
from sklearn.datasets import load_breast_cancer

import latenttree as lt

cells = load_breast_cancer(as_frame=True)
model = lt.LatentTree(n_states=3, random_state=0).fit(cells.data)

# %%
# The name of the model at the end of a cell shows what was learned, the tree, and what is doubtful:
model

# %%
# Topics, and one hidden variable:
model.topics(n_words=5, level=4)

# %%
model.describe(model.topics(level=4).levels[0][0].name, n=5)

# %%
# A picture; ``color_by`` takes any column about the variables. Here: which of the three values of a
# feature.
kind = {name: name.split()[0] if name[:5] == "worst" else name.split()[-1] for name in cells.data}
axes = model.plot(color_by=kind, max_label=24, title="30 measurements of cell nuclei")

# %%
# Tables are DataFrames, of pandas or, after ``set_output(transform="polars")``, of polars:
model.edges().sort_values("support").head(4)

# %%
# The hidden variables beside something the model never saw, the diagnosis:
posterior = model.set_output(transform="pandas").transform(cells.data)
most = posterior.corrwith(cells.target).abs().idxmax()
posterior[most].groupby(cells.target_names[cells.target]).mean().round(3).to_frame()

# %%
# What the fit says of itself, as pictures:
panels = model.plot_diagnostics()

# %%
# Messages about data are warnings of their own class, which can be switched off.
import warnings

warnings.simplefilter("ignore", lt.errors.DataWarning)
