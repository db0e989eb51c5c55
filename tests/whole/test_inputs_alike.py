"""The same samples in another form give the same model, and the same answers to it."""

from __future__ import annotations

import io
import sys
import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from scipy.io import mmwrite
from sklearn.base import clone
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.pipeline import make_pipeline

import latenttree as lt
from latenttree.data.files import standard_input
from latenttree.errors import DataError, DataWarning

WORDS = tuple("abcdefghi")
BITS = lt.datasets.make_latent_tree(9, n_samples=2000, random_state=0).X


def learn(X: Any, **options: Any) -> lt.LatentTree:
    quick = {"random_state": 0, "n_jobs": 1, "search": False, "support": "model", "n_states": 2}
    return lt.LatentTree(**(quick | options)).fit(X)


def frame() -> pd.DataFrame:
    """Labels, booleans, and numbers that depend on them."""
    rng = np.random.default_rng(1)
    found = pd.DataFrame(BITS, columns=list(WORDS)).astype(bool)
    found["a"] = np.where(BITS[:, 0], "yes", "no")
    return found.assign(i=(BITS[:, 8] + rng.normal(size=len(BITS))).round(3))


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".parquet", ".feather", ".xlsx"])
def test_files_of_columns(tmp_path: Path, suffix: str) -> None:
    path, X = tmp_path / f"x{suffix}", frame()
    write = {
        ".csv": lambda: X.to_csv(path, index=False),
        ".tsv": lambda: X.to_csv(path, index=False, sep="\t"),
        ".parquet": lambda: X.to_parquet(path),
        ".feather": lambda: X.to_feather(path),
        ".xlsx": lambda: X.to_excel(path, index=False),
    }
    write[suffix]()
    model, other = learn(path), learn(X)
    np.testing.assert_allclose(model.transform(path), other.transform(X))
    for one in (model, other):
        for data in (path, str(path), X):
            np.testing.assert_allclose(one.score(data), other.score(X))
            np.testing.assert_array_equal(one.predict(data), other.predict(X))
            np.testing.assert_allclose(one.predict_proba(data, "b"), other.predict_proba(X, "b"))
    assert other.impute(path).equals(other.impute(X))
    X.drop(columns="c").to_csv(tmp_path / "less.csv", index=False)
    with pytest.raises(DataError, match="yet now missing:\n- c\n"):
        model.transform(tmp_path / "less.csv")
    assert model.predict_proba(tmp_path / "less.csv", "c").shape == (len(X), 2)


def test_a_csv_of_booleans_is_what_pandas_reads(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    frame()[["b", "c", "d", "e"]].to_csv(path, index=False)
    model = learn(path)
    assert model.classes_of("b").tolist() == [False, True]
    assert model.score(pd.read_csv(path)) == model.score(path)
    path.write_text(path.read_text().replace("True", "TRUE"))
    assert learn(path).classes_of("b").tolist() == [False, True]


def test_unknown_labels_of_a_file(tmp_path: Path) -> None:
    path, model = tmp_path / "x.csv", learn(frame())
    frame().replace({"a": {"no": "perhaps"}}).to_csv(path, index=False)
    with pytest.warns(DataWarning, match="did not occur in training"):
        model.transform(path)
    with pytest.raises(DataError, match="'perhaps' did not occur in training"):
        model.set_params(handle_unknown="error").transform(path)


def test_files_of_matrices(tmp_path: Path) -> None:
    X = sparse.csr_matrix(BITS.astype(float))
    sparse.save_npz(tmp_path / "x.npz", X)
    np.save(tmp_path / "x.npy", BITS)
    mmwrite(tmp_path / "x.mtx", X)
    (tmp_path / "x.columns.txt").write_text("\n".join(WORDS))
    genes = tmp_path / "genes"
    genes.mkdir()
    mmwrite(genes / "matrix.mtx", X.T)
    lines = [f"ENS{i}\t{word}\tGene" for i, word in enumerate(WORDS)]
    (genes / "features.tsv").write_text("\n".join(lines))
    model, expected = learn(X, names=WORDS), learn(X).score(X)
    for path in ("x.mtx", "genes/matrix.mtx"):
        assert learn(tmp_path / path).tree_ == model.tree_
        assert model.score(tmp_path / path) == pytest.approx(expected)
    for path in ("x.npz", "x.npy"):
        assert model.score(tmp_path / path) == pytest.approx(expected)


def test_standard_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model, X = learn(frame()), frame()
    for text, suffix in (
        (X.to_csv(index=False), ".csv"),
        (X.to_csv(index=False, sep="\t"), ".tsv"),
    ):
        standard_input._standard_input.cache_clear()
        monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(text.encode())))
        assert model.score("-") == pytest.approx(model.score(X))
        assert lt.data.read_table("-").n_samples == len(X)  # it is read once
        assert standard_input.stored("-").suffix == suffix
    standard_input._standard_input.cache_clear()


# ---- words ------------------------------------------------------------------------------


def documents() -> list[str]:
    return [" ".join(w for w, bit in zip(WORDS, row, strict=True) if bit) + " x x" for row in BITS]


def words(**options: Any) -> CountVectorizer:
    return CountVectorizer(token_pattern=r"\b[a-i]\b", **options)


@pytest.mark.parametrize("vectorizer", [words(), TfidfVectorizer(token_pattern=r"\b[a-i]\b")])
def test_a_pipeline_knows_the_words(vectorizer: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", DataWarning)
        pipeline = make_pipeline(lt.text.Words(vectorizer), clone(learn(BITS)))
        found = clone(pipeline).fit(documents())
    model = found[-1]
    assert model.tree_.observed_names == WORDS
    assert model.feature_names_in_.tolist() == list(WORDS)
    expected = learn(sparse.csr_array(BITS.astype(float)), names=WORDS)
    assert model.tree_ == expected.tree_
    np.testing.assert_allclose(found.transform(documents()), expected.transform(BITS))
    assert found.get_feature_names_out().tolist() == expected.get_feature_names_out().tolist()
    few = found[0].transform(["b d unknown"])
    assert few.toarray().tolist() == [[0, 1, 0, 1, 0, 0, 0, 0, 0]]


def test_names_of_a_vectorizer(tmp_path: Path) -> None:
    vectorizer = words(binary=True)
    model = make_pipeline(vectorizer, clone(learn(BITS)).set_params(names=vectorizer))
    model.fit(documents())
    assert model[-1].tree_.observed_names == WORDS
    model[-1].save(tmp_path / "m.ltree")
    assert lt.load(tmp_path / "m.ltree").feature_names_in_.tolist() == list(WORDS)
    with pytest.raises(DataError, match="names is a CountVectorizer that is not fitted"):
        learn(BITS, names=words())


def test_counts_are_not_made_presence_in_silence() -> None:
    X = sparse.csr_array(BITS * 3.0)
    with pytest.warns(DataWarning, match=r"\(up to 3\) are read as 1.*family='binary' says"):
        model = learn(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error", DataWarning)
        assert learn(X, family="binary").tree_ == model.tree_
        assert learn(X > 0).tree_ == model.tree_


def test_sparse_columns_of_pandas() -> None:
    X = pd.DataFrame.sparse.from_spmatrix(sparse.csr_matrix(BITS), columns=list(WORDS))
    model = learn(X)
    assert (model.schema_.kind, model.tree_.observed_names) == ("sparse_binary", WORDS)
    turned = X[list(reversed(WORDS))]
    np.testing.assert_allclose(model.transform(turned), model.transform(X))
    np.testing.assert_allclose(
        model.transform(pd.DataFrame(BITS, columns=WORDS)), model.transform(X)
    )


def test_names_of_a_matrix_are_found_in_a_frame() -> None:
    model = learn(sparse.csr_array(BITS.astype(float)), names=WORDS)
    X = pd.DataFrame(BITS, columns=list(WORDS))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_array_equal(model.transform(X[list(reversed(WORDS))]), model.transform(X))
        model.transform(sparse.csr_array(BITS))
    with pytest.raises(DataError, match="unseen at fit time:\n- z\n"):
        model.transform(X.assign(z=1))


# ---- events -----------------------------------------------------------------------------


def events() -> tuple[list[int], list[str]]:
    rows, columns = np.nonzero(BITS)
    return rows.tolist(), [WORDS[j] for j in columns.tolist()]


def test_events_are_fitted_and_asked() -> None:
    found = lt.data.read_events(events())
    model, expected = learn(found), learn(found.table())
    assert model.tree_ == expected.tree_
    assert model.score(found) == expected.score(found.table())
    new = lt.data.read_events(([1, 1, 2], ["c", "a", "z"]), codes=model, all_samples=[1, 2])
    with pytest.warns(DataWarning, match="1 of 3 occurrences have codes that .* 'z'"):
        answers = model.transform(new)
    rows = np.zeros((2, 9))
    rows[0, [0, 2]] = 1
    np.testing.assert_allclose(answers, model.transform(pd.DataFrame(rows, columns=list(WORDS))))
    with pytest.raises(DataError, match=r"read them again with read_events\(\.\.\., codes=model\)"):
        model.transform(lt.data.read_events(([1, 2, 3, 4, 3], list("aabbc"))))
    with pytest.raises(DataError, match="the model does not know: 'z'"):
        model.set_params(handle_unknown="error").transform(new)
    with pytest.raises(DataError, match="was not learned from events"):
        lt.data.read_events(([1], ["a"]), codes=learn(frame()))


def test_codes_of_groups() -> None:
    groups = dict(zip(WORDS, ("g", "g", "g", "k", "k", "k", "l", "l", "l"), strict=True))
    found = lt.data.read_events(events(), groups=groups)
    model = learn(found)
    assert model.tree_.observed_names == ("g", "k", "l")
    both = model.predict_proba({"g:a": 1, "b": 0}, ["f", "k:d"])
    assert {name: p.shape for name, p in both.items()} == {"f": (1, 2), "k:d": (1, 2)}
    new = lt.data.read_events(([1, 1], ["a", "e"]), codes=model)
    expected = model.transform({"g": {"a"}, "k": {"e"}, "l": set()})
    np.testing.assert_allclose(model.transform(new), expected)


# ---- alignments and trees ---------------------------------------------------------------


def test_an_alignment_has_four_states(tmp_path: Path) -> None:
    path, rng = tmp_path / "x.fasta", np.random.default_rng(0)
    root = rng.integers(0, 4, 1500)
    taxa = [np.where(rng.random(1500) < 0.2, rng.integers(0, 4, 1500), root) for _ in range(4)]
    letters = np.array(list("ACGT"))
    path.write_text("".join(f">t{i}\n{''.join(letters[t])}\n" for i, t in enumerate(taxa)))
    model = learn(path, n_states="auto")
    assert set(model.diagnostics_.hidden_states) == {4}
    X = pd.DataFrame({f"t{i}": letters[t] for i, t in enumerate(taxa)})
    assert set(learn(X, n_states="auto").diagnostics_.hidden_states) == {4}
    assert model.score(path) == pytest.approx(model.score(X))


def test_observed_variables_as_leaves() -> None:
    rng = np.random.default_rng(0)
    chain = [rng.integers(0, 2, 3000)]
    for _ in range(5):
        chain.append(np.where(rng.random(3000) < 0.15, 1 - chain[-1], chain[-1]))
    X = np.stack(chain, axis=1)
    assert learn(X, structure="chow_liu").tree_.degree()[:6].max() == 2
    model = learn(X, structure="chow_liu", observed_as_leaves=True)
    assert model.tree_.degree()[:6].max() == 1
    assert model.tree_.n_hidden > 0


def test_a_model_is_exported(tmp_path: Path) -> None:
    model = learn(frame()[list("abcdefgh")])
    for suffix in (".nwk", ".nex", ".graphml", ".gexf", ".dot", ".bif", ".uai", ".json"):
        assert model.export(tmp_path / f"m{suffix}") == [tmp_path / f"m{suffix}"]
    assert len(model.export(tmp_path / "m.parquet")) == 2
    entries = pd.read_parquet(tmp_path / "m.conditionals.parquet")
    assert set(entries[entries.node == "a"].label) == {"no", "yes"}
    assert lt.Tree.from_newick(model.to_newick(root="midpoint")) == model.tree_
    assert model.to_nexus(support="label").startswith("#NEXUS")
    with pytest.raises(DataError, match="categories alone, but 'i' is a number"):
        learn(frame()).export(tmp_path / "n.bif")
