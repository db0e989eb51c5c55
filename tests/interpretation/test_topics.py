"""Topics, descriptions and names of fitted models."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse

import latenttree as lt
from latenttree.errors import DataError
from latenttree.interpretation.topics import default_levels

THEMES = ("ball", "court", "star", "vote")


@pytest.fixture(scope="module")
def words() -> Any:
    """Documents of 4 themes of 6 words each, and their model."""
    rng = np.random.default_rng(0)
    themes = rng.random((4_000, 4)) < 0.25
    X = rng.random((4_000, 24)) < np.where(np.repeat(themes, 6, axis=1), 0.6, 0.05)
    names = [f"{theme}{i}" for theme in THEMES for i in range(6)]
    model = lt.LatentTree(2, names=names, support="model", random_state=0)
    return model.fit(sparse.csr_array(X.astype(np.float32)))


def themes_of(words: Any) -> set[str]:
    return {word[:-1] for word in words}


def test_topics_are_the_themes(words: Any) -> None:
    topics = words.topics(level=4)
    assert len(topics) == 4
    assert [topic.n_variables for topic in topics] == [6] * 4
    assert all(len(themes_of(topic.words)) == 1 for topic in topics)
    assert all(topic.share == pytest.approx(0.25, abs=0.04) for topic in topics)
    assert all(set(topic.directions) == {1} for topic in topics)
    assert themes_of(word for topic in topics for word in topic.words) == set(THEMES)


def test_levels_nest_and_every_variable_is_in_one_topic(words: Any) -> None:
    topics = words.topics(n_words=24, level=(2, 4))
    coarse, fine = topics.levels
    assert {topic.parent for topic in fine} <= {topic.name for topic in coarse}
    for topic in coarse:
        inside = topics.inside(topic, 1)
        assert topic.n_variables == sum(other.n_variables for other in inside)
    assert sum(topic.n_variables for topic in fine) == 24


def test_the_coarse_level_is_that_of_its_own_question(words: Any) -> None:
    alone = {topic.name for topic in words.topics(level=2)}
    assert alone == {topic.name for topic in words.topics(level=(2, 4)).levels[0]}


def test_text_html_and_tables(words: Any) -> None:
    topics = words.topics(n_words=3, level=(2, 4))
    assert "ball" in str(topics)
    assert str(topics).count("\n") == 3  # a topic is not repeated below itself
    assert topics._repr_html_().count("<div") + topics._repr_html_().count("<details") == 4
    assert topics.table.shape == (6, 6)
    assert list(topics.words.columns) == ["level", "topic", "rank", "word", "bits", "direction"]
    assert len(topics.words) == 18
    assert (topics.words.groupby(["level", "topic"]).bits.diff().dropna() <= 0).all()


def test_tables_of_polars(words: Any) -> None:
    polars = pytest.importorskip("polars")
    words.set_output(transform="polars")
    try:
        assert isinstance(words.topics(level=2).table, polars.DataFrame)
        assert isinstance(words.describe("ball0").table, polars.DataFrame)
    finally:
        words.set_output(transform="default")


@pytest.mark.parametrize("level", [0, 2.5, "many", (), (3, 0), True])
def test_levels_that_make_no_sense(words: Any, level: Any) -> None:
    with pytest.raises(DataError, match="level="):
        words.topics(level=level)


def test_more_topics_than_hidden_nodes_are_all_of_them(words: Any) -> None:
    assert 4 <= len(words.topics(level=500)) <= words.tree_.n_hidden


def test_default_levels_of_many_sizes() -> None:
    assert default_levels(12_000) == (10, 50, 200)
    assert default_levels(100) == (10,)
    assert default_levels(3) == (1,)


def test_no_hidden_nodes() -> None:
    X = np.random.default_rng(0).integers(0, 2, (500, 2))
    model = lt.LatentTree(2, random_state=0).fit(X)
    assert "no hidden nodes" in str(model.topics())


# ---- descriptions ---------------------------------------------------------------------


def test_a_hidden_node_is_described_by_what_propagation_says(words: Any) -> None:
    node = words.topics(level=4)[0].name
    found = words.describe(node, n=12)
    assert [each.bits for each in found.related] == sorted(
        (each.bits for each in found.related), reverse=True
    )
    for each in found.related:
        for state in range(2):
            expected = words.predict_proba({node: state}, query=each.name)[0, 1]
            assert each.values[0, state] == pytest.approx(expected, abs=1e-9)
    assert found.shares == pytest.approx(words.marginal(node))
    assert found.table.shape == (len(found.related), 6)
    assert "nearest hidden" in str(found)
    assert "<table>" in found._repr_html_()


def test_an_observed_word_is_related_to_its_theme(words: Any) -> None:
    found = words.describe("star3", n=5)
    assert themes_of(each.name for each in found.related) == {"star"}
    assert not found.hidden
    assert found.states == ("0", "1")


def test_every_family_is_described() -> None:
    data = lt.datasets.make_latent_tree(9, 2, 4, family="mixed", n_samples=2_000, random_state=0)
    model = lt.LatentTree(2, random_state=0, family=data.family, support="model").fit(data.X)
    assert str(model.topics())
    for node in (*model.tree_.hidden_names, *model.tree_.observed_names):
        found = model.describe(node, n=3)
        alone = node in model.diagnostics_.independent
        assert alone == ("no other variable" in str(found)) == (len(found.related) == 0)
        assert found.name in str(found)


def test_means_of_a_number_in_each_state() -> None:
    data = lt.datasets.make_latent_tree(9, 2, family="gaussian", n_samples=2_000, random_state=0)
    model = lt.LatentTree(2, random_state=0, support="model").fit(data.X)
    hidden = model.tree_.hidden_names[0]
    for each in model.describe(hidden).related:
        if model.tree_.index(hidden) in model.tree_.neighbors(each.name):
            np.testing.assert_allclose(each.values, model.conditional(each.name, hidden))


def test_gaussian_trees_are_described_by_means_a_deviation_apart() -> None:
    data = lt.datasets.make_latent_tree(9, 1, 1, hidden="gaussian", n_samples=2_000, random_state=0)
    model = lt.LatentTree(1, hidden="gaussian", random_state=0, support="model").fit(data.X)
    found = model.describe(model.tree_.hidden_names[0])
    for each in found.related:
        low, high = each.values[0]
        assert (high > low) == (each.direction > 0)
    assert found.states == ("-1 sd", "+1 sd")
    assert np.isnan(model.topics()[0].share)


# ---- names ----------------------------------------------------------------------------


@pytest.fixture
def named() -> Any:
    data = lt.datasets.make_latent_tree(9, n_samples=4_000, random_state=0)
    return lt.LatentTree(2, random_state=0, support="model").fit(data.X)


def test_a_name_goes_everywhere(named: Any, tmp_path: Any) -> None:
    before = named.transform(named.sample(5, random_state=0)[0])
    old = named.tree_.hidden_names[1]
    assert named.name(old, "my theme") is named
    assert named.model_.tree.names == named.tree_.names
    assert "my theme=1" in named.get_feature_names_out()
    assert "my theme" in named.to_newick()
    assert "my theme" in named.to_graphml()
    named.save(tmp_path / "m.ltree")
    again = lt.load(tmp_path / "m.ltree")
    assert again.tree_.names == named.tree_.names
    assert again.describe("my theme").name == "my theme"
    np.testing.assert_array_equal(again.transform(named.sample(5, random_state=0)[0]), before)
    assert old not in str(named.topics()).replace("my theme", "")


@pytest.mark.parametrize(("node", "name"), [("h0", "x1"), ("h0", "h1"), ("h0", " "), ("h0", 3)])
def test_names_are_checked(named: Any, node: str, name: Any) -> None:
    with pytest.raises(DataError):
        named.name(node, name)
    assert named.tree_.names[named.tree_.n_observed] == "h0"


def test_observed_variables_keep_their_names(named: Any) -> None:
    with pytest.raises(DataError, match="observed"):
        named.name("x0", "other")


def test_all_hidden_nodes_are_named_by_their_words(words: Any) -> None:
    model = words.__class__(**words.get_params())
    vars(model).update(vars(words))
    model.name_hidden()
    names = model.tree_.hidden_names
    assert len(set(names)) == len(names)
    for topic in model.topics(level=4):
        assert topic.name.split("/")[0] in topic.words


def test_a_tree_with_other_names_is_the_same_tree() -> None:
    tree = lt.Tree.build("abcd", [(0, 4), (1, 4), (4, 5), (2, 5), (3, 5)], [1.0] * 5)
    other = tree.rename({"h0": "left", 5: "right"})
    assert other.names == ("a", "b", "c", "d", "left", "right")
    assert other == tree
    with pytest.raises(DataError, match="more than once"):
        tree.rename({"h0": "a"})
