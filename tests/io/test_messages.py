"""Notes of a fit come back with their options, and files without them are read too."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from latenttree.cli.wording import in_words
from latenttree.errors import Option, Phrase, Text
from latenttree.io.archive import Saved, load_archive, save_archive
from latenttree.io.messages import parts_of, with_parts
from latenttree.io.treefile import load_tree, save_tree
from latenttree.model.tree_model import TreeModel
from latenttree.report import Diagnostics
from latenttree.tree import Tree

TREE = Tree.build(["a", "b", "c"], [(0, 3), (1, 3), (2, 3)], [1.0] * 3)
NOTES = [
    "two pairs unmeasurable",
    Text("still gaining; raise ", Option("max_iter")),
    Text("kids was read as counts; pass ", Option("family", {"kids": "gaussian"})),
    Text("3 events ", Phrase("other samples", "of samples that are not in all_samples")),
    Text("plain"),
]


def model() -> TreeModel:
    cpt = np.full((2, 2), 0.5)
    return TreeModel(TREE, 3, (cpt, cpt, cpt, np.full((2, 1), 0.5)))


def check_notes(messages: Any) -> None:
    assert list(messages) == NOTES
    assert [in_words(note) for note in messages] == [in_words(note) for note in NOTES]
    assert in_words(messages[2]).endswith("pass --family kids=gaussian")


def test_notes_of_a_model_come_back(tmp_path: Path) -> None:
    path = tmp_path / "m.ltree"
    save_archive(path, Saved(model(), diagnostics={"messages": NOTES}))
    diagnostics = load_archive(path).diagnostics
    check_notes(diagnostics["messages"])
    assert set(diagnostics) == {"messages"}
    check_notes(load_tree(path).messages)
    check_notes(Diagnostics.restored(diagnostics).messages)


@pytest.mark.parametrize("name", ["t.json", "t.ltree"])
def test_notes_of_a_tree_come_back(tmp_path: Path, name: str) -> None:
    save_tree(tmp_path / name, TREE, Diagnostics(2, support=np.ones(3), messages=NOTES))
    check_notes(load_tree(tmp_path / name).messages)


def test_files_without_parts_are_read(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    save_tree(path, TREE, Diagnostics(2, support=np.ones(3), messages=NOTES))
    record = json.loads(path.read_text())
    assert record["messages"] == [str(note) for note in NOTES]
    del record["message_parts"]
    path.write_text(json.dumps(record))
    messages = load_tree(path).messages
    assert messages == tuple(NOTES)
    assert not any(isinstance(message, Text) for message in messages)


@pytest.mark.parametrize(
    "parts",
    [
        None,
        [],
        "text",
        {"0": "text"},
        {"0": [{"option": 3}]},
        {"0": [{"phrase": "key"}]},
        {"0": ["another text"]},
        {"7": ["raise ", {"option": "max_iter"}]},
        {"0": ["raise ", {"option": "max_iter", "value": 3}]},
    ],
)
def test_parts_that_do_not_belong_are_ignored(parts: Any) -> None:
    (message,) = with_parts(["raise max_iter"], parts)
    assert message == "raise max_iter"
    assert not isinstance(message, Text)


def test_values_that_json_cannot_hold_stay_text() -> None:
    assert parts_of([Text("pass ", Option("random_state", np.random.default_rng(0)))]) == {}
