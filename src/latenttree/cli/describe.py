"""``latenttree describe``: what a node of a model stands for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from latenttree.cli.commands import Describe
from latenttree.cli.json_output import print_json
from latenttree.cli.model_file import load_model

if TYPE_CHECKING:
    from latenttree.interpretation import Description


def run(asked: Describe) -> None:
    """Describe the node."""
    found = load_model(asked.model, threads=1).describe(asked.node, asked.n)
    if asked.json:
        print_json(_record(found))
    else:
        print(found)


def _record(found: Description) -> dict[str, Any]:
    return {
        "node": found.name,
        "hidden": found.hidden,
        "described_by": found.beside or found.name,
        "states": found.states,
        "shares": found.shares,
        "variables": [vars(each) for each in found.related],
        "nearest_hidden": [{"name": name, "bits": bits} for name, bits in found.nearest],
    }
