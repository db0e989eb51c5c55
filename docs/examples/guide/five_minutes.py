"""
Five minutes
============

One table, one fit, and what to do with the model. Install the library with
``pip install "latenttree[plot]" pandas``; in a checkout ``pip install ".[plot]" pandas``.
"""

# %%
# **A table.** 178 wines that come with scikit-learn: 13 chemical measurements of each, and where it
# was grown, which we keep back.
from sklearn.datasets import load_wine

wine = load_wine(as_frame=True)
wine.data.iloc[:3, :6]

# %%
# **Learn.** Nothing has to be said about the columns, the shape of the tree or the number of hidden
# variables.
import latenttree as lt

model = lt.LatentTree(random_state=0).fit(wine.data)
model.tree_

# %%
# **Look.** Names are the columns; the grey dots between them are the hidden variables that were
# found. A wide edge came back in nearly all resampled tables, a dashed one is a negative
# dependence.
model.plot(color_by=model.variable_groups(4))

# %%
# **Read a hidden variable.** `LatentTree.topics` lists the ones to read first.
# `LatentTree.describe` shows one of them: how many rows are in each state, and the columns that
# tell most about it.
h = model.topics().levels[0][0].name
model.describe(h, n=5)

# %%
# **Give it a name**, which all answers, pictures and files use from then on.
model.name(h, "style")

# %%
# **Ask.** Any columns given any others, exactly. A record says what is known, and no more.
expected = model.impute({"flavanoids": 0.7, "hue": 0.7})
{name: expected[name] for name in ("alcohol", "color_intensity", "proline")}

# %%
# **Fill gaps, score rows, draw new ones.**
with_gaps = wine.data.mask(wine.data > wine.data.quantile(0.9))
model.impute(with_gaps).iloc[:2, :5].round(2)

# %%
print(model.score(wine.data), model.sample(2, random_state=0)[0].shape)

# %%
# **How sure is it?** What the fit says of itself, in sentences and numbers.
print(model.diagnostics_)

# %%
# **Keep it.** The file holds the whole model; reading it executes nothing. `LatentTree.export`
# writes what other programs read, and `LatentTree.to_html` one page that colleagues can open.
import tempfile
from pathlib import Path

folder = Path(tempfile.mkdtemp())
model.save(folder / "wine.ltree")
model.export(folder / "wine.nex")
model.to_html(folder / "wine.html")
lt.load(folder / "wine.ltree").tree_
