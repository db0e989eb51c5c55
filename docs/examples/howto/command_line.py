"""
Command line: from a file to a model
====================================

Everything the library learns, asks and draws works on files, without a line of Python.
"""

# %%
# A file to try it on, :download:`patients.csv <../guide/patients.csv>`: made-up patients, with
# empty cells. Yours is .csv, .tsv, .parquet, .xlsx, .npy, .npz, .mtx, a bag-of-words
# docword file, an alignment in .fasta, or a table of events; ``-`` reads standard input.
#
# .. commands::
#    :files: guide/patients.csv
#
#    head -n 3 patients.csv
#
# Learn
# -----
#
# .. commands::
#    :lines: 14
#
#    latenttree fit patients.csv -o patients.ltree --family visits=poisson --plot patients.png
#
# ``--seed`` fixes what is drawn at random, so that a fit can be repeated. ``--states`` asks for
# a number of states, ``--family`` says how columns are read, ``--ignore`` leaves columns out.
#
# Look
# ----
#
# .. commands::
#    :lines: 40
#
#    latenttree show patients.ltree
#
# One node, with its neighbours and conditional distributions:
#
# .. commands::
#    :lines: 24
#
#    latenttree show patients.ltree --node chest_pain
#
# Ask
# ---
# Any variables given any others, hidden ones (``h0``, ...) too.
#
# .. commands::
#
#    latenttree query patients.ltree --given "cough=yes,temperature=38.5" crp antibiotics h0
#
# New rows
# --------
# Empty cells are gaps. A score for each row, the probabilities of the hidden variables, filled
# gaps, and rows drawn from the model:
#
# .. commands::
#    :lines: 12
#
#    head -n 4 patients.csv > new.csv
#    latenttree score patients.ltree new.csv
#    latenttree impute patients.ltree new.csv -o filled.csv
#    cut -d, -f1-6 filled.csv
#    latenttree transform patients.ltree new.csv -o posteriors.csv
#    latenttree sample patients.ltree -n 1000 -o drawn.csv
#
# Share
# -----
# One page with a map of the tree, search and all probabilities, which needs no network. ``fit``
# with ``-o tree.nwk`` writes the tree alone, with ``-o tree.json`` the tree and its support; a
# ``.ltree`` file is the whole model, for ``lt.load`` in Python too.
#
# .. commands::
#
#    latenttree page patients.ltree -o patients.html
#
# Help
# ----
# Every command says what it takes:
#
# .. commands::
#    :lines: 24
#
#    latenttree fit --help
#
# More fits, as they would be typed
# ---------------------------------
#
# .. code-block:: console
#
#    $ latenttree fit survey.csv --family visits=poisson --weights times -o survey.ltree
#    $ latenttree fit returns.csv --hidden gaussian -o returns.ltree
#    $ latenttree fit events.csv --events --groups codes.csv:code:group -o events.ltree
#    $ latenttree fit alignment.fasta --support bootstrap -o taxa.ltree
#    $ latenttree fit table.csv --ignore smoker --memory-limit 8GiB --verbose -o rest.ltree
#    $ latenttree fit table.csv --states 16 --support bootstrap --resamples 5 -o rich.ltree
#    $ latenttree fit table.csv --states 2 -o tree.nwk
#    $ latenttree query rest.ltree --given "cough=yes:0.8/no:0.2" fever
#

# sphinx_gallery_thumbnail_path = "images/digits_tree.png"
