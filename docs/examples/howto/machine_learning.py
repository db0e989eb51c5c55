"""
Machine learning: densities, gaps and features
==============================================

A latent tree model is a density of tables: it scores rows, fills gaps, draws samples and hands its
posteriors to the next step of a pipeline. `LatentTree` is an estimator of scikit-learn.
"""

# %%
# The data: the 8 x 8 images of handwritten digits that come with scikit-learn, black or white.
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

digits = load_digits(as_frame=True)
X = (digits.data > 8).astype(int)
train, test, y_train, y_test = train_test_split(X, digits.target, random_state=0)

# %%
# A density
# ---------
# With ``n_states="auto"``, the default, hidden variables get as many states as held-out rows
# support. Here 16 are asked for, to keep the page quick.
import latenttree as lt

model = lt.LatentTree(n_states=16, drop_constant=True, support="model", random_state=0).fit(train)
print(f"{model.score(train):.2f} nats a row in training, {model.score(test):.2f} in the test")

# %%
# Rows that are unlike the others have a low density. The five strangest digits of the test:
from matplotlib import pyplot as plt

strange = model.score_samples(test).argsort()[:5]
figure, panels = plt.subplots(1, 5, figsize=(7, 1.6), layout="constrained")
for axes, i in zip(panels, strange, strict=True):
    axes.imshow(test.iloc[i].to_numpy().reshape(8, 8), cmap="gray_r")
    axes.set_axis_off()

# %%
# Gaps
# ----
# The lower half of every image is taken away, and filled by its most probable values. Answers use
# everything that is known of a row.
import numpy as np

upper = test.astype(float)
upper.iloc[:, 32:] = np.nan
filled = model.impute(upper)
figure, panels = plt.subplots(2, 8, figsize=(9, 2.4), layout="constrained")
for column, (above, below) in enumerate(panels.T):
    above.imshow(upper.iloc[column].to_numpy().reshape(8, 8), cmap="gray_r", vmin=0, vmax=1)
    below.imshow(filled.iloc[column].to_numpy(float).reshape(8, 8), cmap="gray_r")
    above.set_axis_off()
    below.set_axis_off()

# %%
# Features
# --------
# `LatentTree.transform` gives the posterior of every hidden variable. In a pipeline they are the
# features of a classifier, and rows with gaps are classified too.
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

classifier = make_pipeline(model, LogisticRegression(max_iter=2000))
classifier.fit(train, y_train)
print(f"accuracy {classifier.score(test, y_test):.3f}")
print(f"accuracy with half of the pixels missing {classifier.score(upper, y_test):.3f}")

# %%
# New samples
# -----------
drawn, hidden = model.sample(8, random_state=0)
figure, panels = plt.subplots(1, 8, figsize=(9, 1.3), layout="constrained")
for axes, row in zip(panels, drawn.to_numpy(float), strict=True):
    axes.imshow(row.reshape(8, 8), cmap="gray_r")
    axes.set_axis_off()
