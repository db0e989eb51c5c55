"""``latenttree topics``: the hidden variables to read a model by."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from latenttree.cli.commands import Topics
from latenttree.cli.json_output import print_json
from latenttree.cli.model_file import load_model
from latenttree.cli.printing import new_progress

if TYPE_CHECKING:
    from latenttree.interpretation import Topic


def run(asked: Topics) -> None:
    """Find the topics, and print them."""
    fitted = load_model(asked.model, asked.threads)
    with new_progress().stage("topics"):
        found = fitted.topics(asked.words, asked.level)
    if asked.json:
        print_json({"levels": [list(map(_record, level)) for level in found.levels]})
    else:
        print(found.text("--level {}"))  # rich would read names in brackets as markup


def _record(topic: Topic) -> dict[str, Any]:
    own = {name: value for name, value in vars(topic).items() if name != "name"}
    return {"topic": topic.name} | own
