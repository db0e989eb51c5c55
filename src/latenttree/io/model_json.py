"""Models as JSON: the tree as `treefile` has it, and the distribution of every node."""

from __future__ import annotations

import json

from latenttree.io.exported import Exported, distributions
from latenttree.io.json_text import from_json, to_json
from latenttree.io.treefile import tree_json


def to_model_json(exported: Exported) -> str:
    """JSON text. `names`, `n_observed`, `edges`, `lengths`, `signs` and `support` are those of the
    tree, and `latenttree.io.treefile.load_tree` reads it; `distributions` has a record for every
    node, root first, see `exported.distributions`."""
    record = from_json(tree_json(exported.tree.with_evidence(support=exported.support)))
    record["distributions"] = from_json(to_json(list(distributions(exported)), "distributions"))
    return json.dumps(record, ensure_ascii=False, indent=1) + "\n"
