"""`latenttree page`."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from tests.cli.commands import accepted, refused
from tests.page.pages import data_of, fitted, survey


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "model.ltree"
    fitted(survey()).save(path)
    return path


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_page_with_columns(model: Path, suffix: str, tmp_path: Path) -> None:
    table = pd.DataFrame({"question": survey().columns, "kind": ["sport", "music", "food"] * 4})
    file, out = tmp_path / f"kinds{suffix}", tmp_path / "tree.html"
    table.to_csv(file, index=False) if suffix == ".csv" else table.to_parquet(file)
    options = ("--columns", file, "--color-by", "kind", "--title", "Opinions", "--topics", "2")
    assert "tree.html" in accepted("page", model, "-o", out, *options)
    text = out.read_text(encoding="utf8")
    data = data_of(text)
    assert "<title>Opinions</title>" in text
    assert data["columns"][data["color_by"]]["labels"] == ["food", "music", "sport"]
    assert [len(level["topics"]) for level in data["levels"]] == [2]


def test_names_that_are_numbers_are_read_as_text(tmp_path: Path) -> None:
    X = survey().iloc[:, :4]
    X.columns = ["001", "002", "003", "004"]
    fitted(X).save(tmp_path / "model.ltree")
    (tmp_path / "kinds.csv").write_text("code,kind\n001,a\n002,b\n")
    out = tmp_path / "tree.html"
    accepted("page", tmp_path / "model.ltree", "-o", out, "--columns", tmp_path / "kinds.csv")
    assert data_of(out.read_text(encoding="utf8"))["columns"][0]["values"] == [0, 1, None, None]


def test_what_cannot_be_is_refused(model: Path, tmp_path: Path) -> None:
    assert "end its name in .html" in refused("page", model, "-o", tmp_path / "tree.pdf")
    out = ("-o", tmp_path / "tree.html")
    assert "no such column" in refused("page", model, *out, "--color-by", "kinds")
    assert "neither .csv nor .parquet" in refused("page", model, *out, "--columns", "kinds.xyz")
