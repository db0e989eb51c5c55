"""Pictures that a fitted model draws, and what notebooks show of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest

mpl.use("Agg")

from matplotlib import pyplot
from sklearn import config_context

import latenttree as lt
from latenttree.errors import DataError
from latenttree.plots.conditional_figure import between_states
from latenttree.plots.heatmap_figure import (
    implied_correlations,
    observed_correlations,
    scores_of,
)

FAST = {"n_states": 2, "support": "model", "search": False, "random_state": 0}


@pytest.fixture(scope="module")
def mixed() -> tuple[Any, pd.DataFrame]:
    """Numbers, counts, labels and gaps behind two hidden variables."""
    rng = np.random.default_rng(0)
    ill, old = rng.random((2, 1500)) < 0.45
    table = pd.DataFrame(
        {
            "cough": np.where(rng.random(1500) < np.where(ill, 0.8, 0.1), "yes", "no"),
            "fever": rng.random(1500) < np.where(ill, 0.7, 0.05),
            "crp": rng.normal(np.where(ill, 40.0, 5.0), 4.0),
            "visits": rng.poisson(np.where(ill, 4.0, 0.7)),
            "age": rng.normal(np.where(old, 70.0, 35.0), 8.0),
            "glasses": rng.random(1500) < np.where(old, 0.9, 0.3),
            "retired": rng.random(1500) < np.where(old, 0.8, 0.02),
        }
    )
    table = table.mask(rng.random(table.shape) < 0.1)
    return lt.LatentTree(**FAST, family={"visits": "poisson"}).fit(table), table


@pytest.fixture(scope="module")
def gaussian() -> tuple[Any, np.ndarray]:
    data = lt.datasets.make_latent_tree(8, family="gaussian", n_samples=2000, random_state=0)
    return lt.LatentTree(hidden="gaussian", n_states=1, support="model").fit(data.X), data.X


@pytest.fixture(autouse=True)
def closed() -> Any:
    yield
    pyplot.close("all")


def test_every_picture_is_written(mixed: Any, tmp_path: Path) -> None:
    model, table = mixed
    model.plot(path=tmp_path / "tree.svg", color_by={"cough": "ill", "age": "old"}, title="x")
    model.plot_neighborhood("h0", path=tmp_path / "near.pdf")
    model.plot_conditional("crp", path=tmp_path / "crp.png")
    model.plot_topics(path=tmp_path / "topics.png")
    model.plot_heatmap(table, path=tmp_path / "heat.svg", title="pairs")
    model.plot_diagnostics(path=tmp_path / "report.png")
    assert {path.name for path in tmp_path.iterdir() if path.stat().st_size > 1000} == {
        *("tree.svg", "near.pdf", "crp.png", "topics.png", "heat.svg", "report.png")
    }


def test_conditionals_of_every_family(mixed: Any) -> None:
    model, _ = mixed
    bars = model.plot_conditional("cough", "h0")
    heights = np.array([bar.get_height() for bar in bars.patches]).reshape(2, -1)
    np.testing.assert_allclose(heights.sum(axis=1), 1)
    expected = np.asarray(model.predict_proba([{"h0": 0}, {"h0": 1}], query="cough"))
    np.testing.assert_allclose(heights, expected, atol=1e-9)
    for name, whole in (("age", False), ("visits", True)):
        for line in model.plot_conditional(name).lines:
            x, y = line.get_data()
            total = y.sum() if whole else np.trapezoid(y, x)
            np.testing.assert_allclose(total, 1, atol=0.01)  # all but the tails
    panels = model.plot_conditional("h0")
    assert len(panels) == len(model.tree_.neighbors("h0"))
    with pytest.raises(DataError, match="no states to condition on"):
        model.plot_conditional("cough", "age")


def test_conditionals_of_distant_nodes_are_those_of_inference(mixed: Any) -> None:
    model, _ = mixed
    tree, n = model.tree_, model.tree_.n_observed
    if tree.n_hidden < 2:
        pytest.skip("one hidden variable")
    share = between_states(model.model_, n, n + 1)
    asked = [{tree.names[n]: s} for s in range(share.shape[1])]
    expected = np.asarray(model.predict_proba(asked, query=tree.names[n + 1]))
    np.testing.assert_allclose(share.T, expected, atol=1e-9)


def test_gaussian_trees(gaussian: Any) -> None:
    model, X = gaussian
    v = model.tree_.names[0]
    line = model.plot_conditional(v).lines[0]
    x, y = line.get_data()
    u = model.tree_.names[model.tree_.neighbors(v)[0]]
    np.testing.assert_allclose(np.diff(y) / np.diff(x), float(model.conditional(v, u)[0, 0]))
    matrix = model.plot_heatmap(X).images[0].get_array()
    assert matrix.shape == (8, 8)
    assert np.abs(matrix - matrix.T).max() < 0.1  # the model fits


def test_implied_correlations_are_those_of_draws(mixed: Any) -> None:
    model, _ = mixed
    families = model.schema_.families
    scores = scores_of(model.model_, families, np.arange(7))
    drawn = model.schema_.rows(model.sample(20_000, random_state=0)[0])
    implied = implied_correlations(model.model_, scores)
    observed = observed_correlations(scores, drawn)
    assert np.abs(implied - observed).max() < 0.05  # 7 standard errors


def test_observed_correlations_with_gaps(mixed: Any) -> None:
    model, table = mixed
    scores = scores_of(model.model_, model.schema_.families, np.arange(7))
    found = observed_correlations(scores, model.schema_.rows(table))
    numbers = table.replace({"no": 0, "yes": 1}).astype(float)
    np.testing.assert_allclose(found, numbers.corr().to_numpy(), atol=1e-6)


def test_diagnostics_of_several_panels(mixed: Any) -> None:
    model, _ = mixed
    titles = [ax.get_title() for ax in model.plot_diagnostics()]
    assert "support of the" in titles[0]
    assert "EM step" in titles[1]
    assert "seconds by stage" in titles[3]


def test_a_notebook_shows_what_was_learned(mixed: Any) -> None:
    model, _ = mixed
    html = model._repr_html_()
    ElementTree.fromstring(html.replace("&#9888;", ""))
    assert "7 observed variables" in html
    assert "<svg" in html
    assert "largest groups: h" in html
    assert model._repr_mimebundle_()["text/html"] == html
    with config_context(display="text"):
        assert set(model._repr_mimebundle_()) == {"text/plain"}
    before = lt.LatentTree()._repr_html_()
    assert "sk-estimator" in before or "sk-container" in before


def test_diagnostics_are_short(mixed: Any) -> None:
    report = mixed[0].diagnostics_
    assert len(repr(report)) < 400
    assert repr(report).startswith("Diagnostics(")
    ElementTree.fromstring(report._repr_html_())


def test_one_state_and_one_dimension_in_words(gaussian: Any) -> None:
    report = gaussian[0].diagnostics_
    assert "of 1 dimension;" in repr(report)
    assert "1 states" not in str(report) + repr(report) + report._repr_html_()
