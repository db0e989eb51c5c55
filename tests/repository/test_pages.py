"""The pages in docs/ name every example and every public method; `make docs` runs them."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from sklearn.base import BaseEstimator

import latenttree as lt

DOCS = Path(__file__).parents[2] / "docs"


def public(cls: type) -> set[str]:
    return {name for name in dir(cls) if not name.startswith("_")}


def test_the_api_lists_every_method() -> None:
    listed = set(re.findall(r"^   LatentTree\.(\w+)$", (DOCS / "api/index.rst").read_text(), re.M))
    inherited = public(BaseEstimator) | {"fit_transform", "set_output", "families_", "load"}
    methods = {name for name in public(lt.LatentTree) - inherited if "request" not in name}
    assert methods - listed == set(), "not in docs/api/index.rst"
    assert listed - public(lt.LatentTree) == set(), "in docs/api/index.rst, and no method"


def test_the_galleries_have_every_example_in_order() -> None:
    source = (DOCS / "_extensions/page_order.py").read_text()
    names = re.findall(r'"(\w+)"', source.split("PAGES")[1].split("def ")[0])
    found = {path.stem for path in (DOCS / "examples").glob("*/*.py")}
    assert found == set(names)


@pytest.mark.parametrize("page", sorted((DOCS / "examples").glob("*/*.py")), ids=lambda p: p.stem)
def test_examples_name_methods_that_exist(page: Path) -> None:
    text = page.read_text(encoding="utf8")
    ast.parse(text)
    named = re.findall(r"`(LatentTree|Tree)\.(\w+)`", text)
    missing = [f"{owner}.{name}" for owner, name in named if not hasattr(getattr(lt, owner), name)]
    assert missing == []


def test_links_of_the_readme_exist() -> None:
    root = DOCS.parent
    links = re.findall(r"\]\(([^)#:]+)\)", (root / "README.md").read_text(encoding="utf8"))
    assert links
    assert [link for link in links if not (root / link).exists()] == []
