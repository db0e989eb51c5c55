"""
Phylogeny: from an alignment to a tree
======================================

Species are observed variables, sites of an alignment are samples, ancestors are hidden. The tree of
a latent tree model is then an evolutionary tree.
"""

# %%
# The data: sequences of 2,000 sites that evolve along a known tree of twelve species, one site in
# fifty unread. Yours is a FASTA file.
import tempfile
from pathlib import Path

import numpy as np

import latenttree as lt

TRUTH = (
    "(((human:.06,chimp:.06):.04,(gorilla:.09,orangutan:.12):.03):.1,"
    "((mouse:.15,rat:.15):.12,rabbit:.25):.06,((cow:.12,(whale:.1,hippo:.1):.05):.08,"
    "(dog:.14,cat:.14):.08):.06);"
)
truth = lt.Tree.from_newick(TRUTH)
rng = np.random.default_rng(0)
parents, order = truth.rooted(truth.centre())
sites = {int(order[0]): rng.integers(4, size=2000)}
for node in map(int, order[1:]):
    length = truth.lengths[(truth.edges == sorted((node, int(parents[node])))).all(axis=1)][0]
    changes = rng.random(2000) < 1 - np.exp(-length)  # Jukes and Cantor's model
    sites[node] = np.where(changes, rng.integers(4, size=2000), sites[int(parents[node])])
folder = Path(tempfile.mkdtemp())
with open(folder / "mammals.fasta", "w") as file:
    for taxon in truth.observed_names:
        letters = np.array(list("ACGT"))[sites[truth.index(taxon)]]
        letters[rng.random(2000) < 0.02] = "-"
        file.write(f">{taxon}\n{''.join(letters)}\n")

# %%
# The tree
# --------
# A path is enough. Nucleotides have four states, gaps are missing values; the support of every
# inner edge is estimated by resampling sites.
model = lt.LatentTree(n_resamples=25, support="bootstrap", random_state=0)
model.fit(folder / "mammals.fasta")
model.plot("top_down", lengths=True, title="2,000 sites")

# %%
# For other programs: Newick with support as labels, rooted in the middle of the longest path, or by
# an outgroup.
print(model.to_newick(root="midpoint", support="label"))

# %%
print(model.to_newick(root=["cow", "whale", "hippo", "dog", "cat"])[:60], "...")
model.export(folder / "mammals.nex")

# %%
# Is it right?
# ------------
# Two edges of Robinson-Foulds distance would be one wrong split. Metrics take trees, models and
# Newick text.
print(lt.metrics.robinson_foulds(truth, model))

# %%
# Lengths are information distances, ``-log |det P|`` of the joint distribution `P` of two nodes
# with both marginals divided out. Under the model of Jukes and Cantor that is three times
# ``-log(1 - q)``, with ``q`` the probability that a site was drawn anew:
from matplotlib import pyplot as plt

figure, axes = plt.subplots(figsize=(4, 3.4), layout="constrained")
learned = model.tree_.path_lengths() / 3
_ = axes.scatter(truth.reorder(model.tree_.observed_names).path_lengths(), learned, s=12)
_ = axes.axline((0, 0), slope=1, linestyle=":", color="grey")
_ = axes.set(xlabel="true distance of two species", ylabel="learned / 3")

# %%
# Ancestors
# ---------
# The hidden variables are the ancestors. Their sequences, site by site:
ancestor = model.tree_.names[model.tree_.path("human", "chimp")[1]]
posterior = model.predict_proba(folder / "mammals.fasta", query=ancestor)
print("".join(np.array(list("ACGT"))[posterior[:60].argmax(axis=1)]), "...")

# %%
# Which of several trees do the sites prefer? ``structure=`` learns the probabilities alone, on a
# tree that is given.
rival = TRUTH.replace("rabbit", "*").replace("dog", "rabbit").replace("*", "dog")
for name, newick in {"true": TRUTH, "rabbit and dog exchanged": rival}.items():
    given = lt.LatentTree(n_states=4, structure=newick, random_state=0)
    given.fit(folder / "mammals.fasta")
    print(f"{name}: BIC {given.bic(folder / 'mammals.fasta'):,.0f}")
