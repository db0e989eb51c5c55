"""
Text: the topics of a corpus
============================

Words that go together hang from the same hidden variables. Read from the top, the tree of words is
a list of topics; each of them divides into narrower ones.
"""

# %%
# The corpus: what NumPy, SciPy and scikit-learn say about their own functions in the description
# and the notes, some 1,700 texts that are on this machine anyway. Yours is a list of strings.
import inspect
import re
from importlib import import_module

SUBJECTS = {
    "numpy": "fft linalg ma polynomial random",
    "scipy": "cluster.hierarchy fft integrate interpolate linalg ndimage optimize signal sparse "
    "spatial special stats",
    "sklearn": "cluster decomposition ensemble feature_extraction.text linear_model metrics "
    "model_selection neighbors preprocessing tree",
}
documents = set()
for package, parts in SUBJECTS.items():
    for part in parts.split():
        for name, value in vars(import_module(f"{package}.{part}")).items():
            if callable(value) and not name.startswith("_"):
                intro, *rest = re.split(r"\n(\w+)\n-{3,}\n", inspect.getdoc(value) or "")
                notes = dict(zip(rest[::2], rest[1::2], strict=True)).get("Notes", "")
                documents.add(f"{intro} {notes}")
documents = sorted(text for text in documents if len(text) > 100)
print(len(documents), "documents")

# %%
# From documents to topics
# ------------------------
# Any vectorizer of scikit-learn will do. `text.Words <latenttree.text.Words>` hands its words on to
# the tree and reads counts as "occurs or not".
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.pipeline import make_pipeline

import latenttree as lt

words = CountVectorizer(stop_words="english", min_df=12, max_df=0.2, token_pattern="[a-z]{4,}")
pipeline = make_pipeline(lt.text.Words(words), lt.LatentTree(random_state=0)).fit(documents)
model = pipeline[-1]
print(model.topics(n_words=6, level=12))

# %%
# The same topics as a picture; the bars are how much a word tells about its topic, in bits. Pale
# bars are words that documents of the topic avoid.
panels = model.plot_topics(level=9, n_words=6, figsize=(11, 6))

# %%
# Levels of detail
# ----------------
# Several numbers give a hierarchy: each of the 30 topics lies below one of the ten.
tree_of_topics = model.topics(n_words=5, level=[10, 30])
print(tree_of_topics)

# %%
# As a table, for a spreadsheet or a paper:
tree_of_topics.table.head(4)

# %%
# One topic
# ---------
# Which hidden variable is about hypothesis tests? The one that the word "hypothesis" tells most
# about. It gets a name, which all pictures and files use.
topics = model.topics(n_words=10, level=30)
about_tests = next(t for t in topics.levels[0] if "hypothesis" in t.words)
model.name(about_tests.name, "hypothesis tests")
model.describe("hypothesis tests", n=6)

# %%
# Documents
# ---------
# The probability of each topic in a text, also a new one:
new = ["Test the null hypothesis that two samples have the same mean.", "Fast Fourier transform."]
posterior = pipeline[:-1].transform(new)
model.predict_proba(posterior, query="hypothesis tests").round(3)

# %%
# A map of words
# --------------
# Of a smaller vocabulary the whole tree fits into one picture. ``min_support=0`` draws all edges:
# wide ones would come back in other texts like these, thin ones are guesses at the finest detail.
# 1,800 texts are few, and most edges are thin.
frequent = CountVectorizer(
    stop_words="english", max_features=130, max_df=0.15, token_pattern="[a-z]{4,}"
)
small = make_pipeline(lt.text.Words(frequent), lt.LatentTree(random_state=0)).fit(documents)[-1]
axes = small.plot(color_by=small.variable_groups(9, signed=False), min_support=0)

# %%
# A page to share
# ---------------
# The whole map of words in one file, with search, levels and all tables. It loads nothing from a
# network.
import tempfile
from pathlib import Path

page = Path(tempfile.mkdtemp()) / "words.html"
model.to_html(page, title="Words of scientific Python")
print(f"{page.stat().st_size / 1e6:.1f} MB")
