"""Files with new samples, read in the words of a model."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.cli.commands import (
    NAMES,
    TREE,
    bits,
    read_csv,
    refused,
    run,
    words,
    write_csv,
)

import latenttree as lt
from latenttree.cli import impute, score, transform
from latenttree.io.treefile import save_tree


@pytest.mark.parametrize(
    ("names", "row", "message"),
    [
        (NAMES[1:], words(bits(2))[0][1:], "lacks 'a0'; the model needs all its 9 columns"),
        ([*NAMES, "id"], [*words(bits(2))[0], 1], "does not know: 'id'; drop them, or"),
        (NAMES, ["perhaps", *words(bits(2))[0][1:]], "sample 1, column 'a0': the value 'perhaps'"),
        ([*NAMES[:-1], "a0"], words(bits(2))[0], "'a0' occurs more than once"),
    ],
)
def test_new_data_that_do_not_fit(
    fitted: Path, tmp_path: Path, names: list[str], row: list[object], message: str
) -> None:
    path = write_csv(tmp_path / "new.csv", names, [row])
    for command in ("score", "transform", "impute"):
        out = tmp_path / "out.csv"
        assert message in refused(command, fitted, path, "-o", out, "--handle-unknown", "error")
        assert not out.exists()


def test_labels_that_did_not_occur_in_training_are_missing(fitted: Path, tmp_path: Path) -> None:
    rows = words(bits(3))
    path = write_csv(tmp_path / "new.csv", NAMES, [["perhaps", *rows[0][1:]], *rows[1:]])
    gaps = write_csv(tmp_path / "gaps.csv", NAMES, [["", *rows[0][1:]], *rows[1:]])
    for command in ("score", "transform", "impute"):
        found, expected = (tmp_path / f"{command}{i}.csv" for i in range(2))
        result = run(command, fitted, path, "-o", found)
        assert result.exit_code == 0
        assert result.stderr.count("warning: ") == 1
        assert "read as missing: 'a0' ('perhaps'); --handle-unknown error" in result.stderr
        assert run(command, fitted, gaps, "-o", expected).stderr == ""
        assert found.read_text() == expected.read_text()


def test_documents(tmp_path: Path) -> None:
    """Words that are too rare to learn from are still in the vocabulary of new documents."""
    X = np.column_stack([np.zeros(4000, dtype=int), bits()])
    pairs, train, new = np.argwhere(X), tmp_path / "docword.a.txt", tmp_path / "docword.b.txt"

    def write(path: Path, n: int) -> None:
        kept = pairs[pairs[:, 0] < n]
        lines = [str(n), "10", str(len(kept)), *(f"{i + 1} {j + 1} 2" for i, j in kept)]
        path.write_text("\n".join(lines))
        vocabulary = path.with_name(path.name.replace("docword", "vocab"))
        vocabulary.write_text("\n".join(["rare", *NAMES]))

    write(train, 4000)
    write(new, 3)
    model, out = tmp_path / "m.ltree", tmp_path / "s.csv"
    assert run("fit", train, "-o", model, "--seed", "0", "--no-search").exit_code == 0
    result = run("score", model, new, "-o", out)
    assert (result.exit_code, result.stderr) == (0, "")
    columns = dict(zip(["rare", *NAMES], X[:3].T, strict=True))
    expected = lt.load(model).score_samples(columns)
    found = [float(row[0]) for row in read_csv(out)[1]]
    np.testing.assert_allclose(found, expected, rtol=1e-8)  # nine digits are written


def test_answers_check_before_they_work(
    fitted: Path, gaps: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        pytest.fail("the work has begun")

    for module in (score, transform, impute):
        monkeypatch.setattr(module, "load_model", fail)
    for command in ("score", "transform", "impute"):
        line = refused(command, fitted, gaps, "-o", tmp_path / "out.doc")
        assert "'out.doc' does not tell how to write a table; end it in .csv" in line
        assert "does not exist" in refused(command, fitted, gaps, "-o", tmp_path / "no/x.csv")
        assert "is the file that is read" in refused(command, fitted, gaps, "-o", gaps)


def test_files_that_are_no_models(tmp_path: Path, gaps: Path) -> None:
    save_tree(tmp_path / "tree.json", TREE)
    assert "'tree.json' is no model" in refused("score", tmp_path / "tree.json", gaps)
    (tmp_path / "bad.ltree").write_bytes(b"PK")
    assert "bad.ltree holds no valid" in refused("score", tmp_path / "bad.ltree", gaps)
    assert "bad.ltree holds no valid" in refused("show", tmp_path / "bad.ltree")
    assert "No such file" in refused("query", tmp_path / "none.ltree", "a")
