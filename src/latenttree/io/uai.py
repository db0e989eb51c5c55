"""Models as UAI, the format of the inference competitions (toulbar2, libDAI, Merlin)."""

from __future__ import annotations

from latenttree.io.bif import plain_number
from latenttree.io.exported import Exported


def to_uai(exported: Exported) -> str:
    """UAI text of a model whose variables are all categorical.

    The format has no names: variables are numbered as in `tree.names`, states as in
    `classes_of(node)`. Each factor is `P(node | parent)`, the states of the node varying fastest;
    their product is the joint distribution. They are written as a Markov network: readers disagree
    on the order of the tables of Bayesian ones (pgmpy turns them round), not of these.
    """
    model = exported.categorical("UAI")
    scopes, tables = [], []
    for v, (cpt, u) in enumerate(zip(model.cpts, model.parents.tolist(), strict=True)):
        scopes.append(f"1 {v}" if u < 0 else f"2 {u} {v}")
        tables += [str(cpt.size), " ".join(map(plain_number, cpt.T.ravel().tolist())), ""]
    head = ["MARKOV", str(len(model.cpts)), " ".join(map(str, model.dims.tolist()))]
    return "\n".join([*head, str(len(scopes)), *scopes, "", *tables])
