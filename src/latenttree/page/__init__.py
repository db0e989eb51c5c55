"""One page to share: a fitted model as a single HTML file that needs nothing else.

In comes a fitted `LatentTree`; out goes the text of a page. `mixin.py` has `to_html`, the method of
the estimator. `content.py` gathers what the page shows (read it first): `layout.py` computes places
of nodes, `distributions.py` their tables, `levels.py` the topics, `columns.py` reads columns of the
user's. `document.py` puts it all into one file with the scripts in `assets/`, plain ES modules of
which `main.js` is to be read first.
"""
