"""`to_html`: what is in the file, for every kind of model, and that no name breaks it."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from tests.page.pages import WICKED, data_of, fitted, survey

from latenttree.errors import DataError
from latenttree.estimator import LatentTree
from latenttree.evaluation.datasets import make_latent_tree
from latenttree.page.document import MODULES, asset, script


@pytest.fixture(scope="module")
def model() -> LatentTree:
    return fitted(survey())


def test_the_data_of_a_page(model: LatentTree) -> None:
    tree = model.tree_
    data = data_of(str(model.to_html()))
    assert data["names"] == list(tree.names)
    for v, u in enumerate(data["parents"]):
        if u >= 0:
            e = int(tree.parent_edges(u)[v])
            assert data["signs"][v] == tree.signs[e]
            assert data["lengths"][v] == pytest.approx(tree.lengths[e], abs=1e-4)
            table = data["tables"][v]
            assert (table["given"], table["completed"]) == (u, True)
            # three digits
            np.testing.assert_allclose(table["values"], model.conditional(v, u)[1], rtol=6e-3)
    for v, told in enumerate(data["telling"][tree.n_observed :], tree.n_observed):
        found = model.describe(v)
        assert [tree.names[v] for v, _, _ in told[:3]] == list(found.table.iloc[:3, 0])


def test_topics_nest_and_cover_dependent_variables(model: LatentTree) -> None:
    coarse, fine = data_of(str(model.to_html(levels=(2, 3))))["levels"]
    assert [len(level["topics"]) for level in (coarse, fine)] == [2, 3]
    pairs = set(zip(fine["member"], coarse["member"], strict=True))
    assert len(pairs) == 3
    assert sum(topic["size"] for topic in fine["topics"]) == model.tree_.n_observed


def test_one_file_that_asks_for_nothing(model: LatentTree, tmp_path: Path) -> None:
    path = tmp_path / "tree.html"
    assert model.to_html(path) is None
    text = path.read_text(encoding="utf8")
    assert text == model.to_html()  # the same every time
    assert "default-src 'none'" in text
    assert not re.search(r"(src|href)=\"(?!data:)", text)
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", text)


class Tags(HTMLParser):
    """All tags that a page opens."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.found.append(tag)


def test_no_name_title_or_label_breaks_out(model: LatentTree) -> None:
    X = survey().iloc[:, : len(WICKED)]
    X.columns = [*WICKED[:5], "plain"]
    X = X.replace({"yes": "</script><img>", "no": "<!--"})
    wicked = fitted(X)
    text = str(wicked.to_html(title=WICKED[0], color_by=dict.fromkeys(X.columns[:3], WICKED[0])))
    assert Tags(text).found.count("script") == 2
    assert sorted(Tags(text).found) == sorted(Tags(str(wicked.to_html())).found)
    assert "img" not in Tags(text).found
    data = data_of(text)
    assert data["names"][:5] == list(WICKED[:5])
    assert data["columns"][0]["labels"] == [WICKED[0]]


@pytest.mark.parametrize(
    "options",
    [
        {"family": "mixed"},
        {"family": "multihot", "dim": 5},
        {"family": "multinomial", "dim": 4},
        {"hidden": "gaussian", "family": "gaussian"},
        {"n_states": 3, "n_categories": 3, "internal_observed": 0.3},
        {"n_states": 3, "n_categories": 30},
    ],
)
def test_every_family(options: dict[str, Any]) -> None:
    data = make_latent_tree(9, n_samples=600, random_state=0, edge_length=0.3, **options)
    hidden = options.get("hidden", "categorical")
    model = fitted(data.X, hidden=hidden, n_states="auto")
    page = data_of(str(model.to_html()))
    assert all(table is not None for v, table in enumerate(page["tables"]) if v != page["root"])
    assert all(x is not None for row in page["marginals"] for x in row)


@pytest.mark.parametrize("p", [1, 2])
@pytest.mark.parametrize("kind", [int, float])
def test_one_and_two_variables(p: int, kind: type) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 1)) + 0.3 * rng.normal(size=(300, p))
    page = data_of(str(fitted((X > 0) if kind is int else X).to_html()))
    assert page["n_observed"] == len(page["names"]) == p
    assert page["levels"] == []


def test_independent_columns() -> None:
    X = np.random.default_rng(0).integers(0, 2, (400, 5))
    page = data_of(str(fitted(X).to_html()))
    assert [s for v, s in enumerate(page["support"]) if v != page["root"]] == [0.0] * 4


def test_colours_at_first(model: LatentTree) -> None:
    kinds = {name: name.split("_")[0] for name in model.tree_.observed_names}
    frame = pd.DataFrame({"kind": pd.Series(kinds), "number": range(12)})
    by_name = data_of(str(model.to_html(columns=frame, color_by="kind")))
    assert by_name["columns"][by_name["color_by"]]["name"] == "kind"
    by_values = data_of(str(model.to_html(columns=frame, color_by=kinds)))
    assert (by_values["color_by"], by_values["columns"][0]["labels"][0]) == (0, "food")
    assert data_of(str(model.to_html(columns=frame)))["color_by"] == -1


def test_what_cannot_be_is_refused(model: LatentTree, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="color_by is 'kinds', and there is no such column"):
        model.to_html(color_by="kinds")
    with pytest.raises(DataError, match=r"'tree\.pdf' is not that of a web page"):
        model.to_html(tmp_path / "tree.pdf")
    with pytest.raises(DataError, match="title=3"):
        model.to_html(title=3)


def test_modules_become_one_script_with_names_that_differ() -> None:
    text = script()
    assert not re.search(r"^(import|export)\b", text, re.MULTILINE)
    names = re.findall(r"^(?:async )?(?:function|class|const) (\w+)", text, re.MULTILINE)
    assert len(names) == len(set(names))
    assert all(asset(f"{name}.js").startswith("//") for name in MODULES)
