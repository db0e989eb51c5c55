"""The page in headless Chromium: search, click, slider, colours, keys; no error, no request."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.page.pages import WICKED, fitted, survey

from benchmarks.browser import browser, console_errors, missing, open_page, requests
from latenttree.evaluation.datasets import make_latent_tree

pytestmark = pytest.mark.skipif(missing() is not None, reason=f"{missing()}")

STATE = "return window.latenttree.state[arguments[0]]"
SCREEN = """const page = window.latenttree, v = page.tree.names.indexOf(arguments[0]);
return page.view.toScreen(page.tree.x[v], page.tree.y[v]);"""
COLOURS = "return Array.from(window.latenttree.scene.nodes.colours)"


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    model = fitted(survey())
    kinds = {name: name.split("_")[0] for name in model.tree_.observed_names}
    columns = {"kind": kinds, "place": {name: i + 0.5 for i, name in enumerate(kinds)}}
    path = tmp_path_factory.mktemp("page") / "tree.html"
    model.to_html(path, columns=columns, levels=(2, 3), title="Opinions")
    with browser() as driver:
        open_page(driver, path)
        yield driver
        assert console_errors(driver) == []
        assert requests(driver) == []


def find(driver: Any, css: str) -> Any:
    return driver.find_element("css selector", css)


def keys(driver: Any, *pressed: str) -> None:
    from selenium.webdriver.common.action_chains import ActionChains

    ActionChains(driver).send_keys(*pressed).perform()


def moves(driver: Any) -> None:
    """Wait until the map stands still."""
    from selenium.webdriver.support.ui import WebDriverWait

    still = "return !window.latenttree.view.flight && !window.latenttree.waiting"
    WebDriverWait(driver, 10, 0.05).until(lambda d: d.execute_script(still))


def test_drawn_by_webgl(opened: Any) -> None:
    assert opened.execute_script("return window.latenttree.renderer.kind") == "WebGL 2"
    assert opened.title == "Opinions"


def test_search_completes_and_shows_the_node(opened: Any) -> None:
    keys(opened, "/", "sic_2")
    assert find(opened, "#found li span").text == "music_2"
    keys(opened, "\ue007")
    assert find(opened, "#panel h2").text == "music_2"
    assert "observed, categorical, 2 states" in find(opened, "#panel .kind").text
    assert "Share of samples" in find(opened, "#panel").text
    keys(opened, "\ue00c")
    assert not find(opened, "#panel").is_displayed()


def test_a_click_shows_the_neighbourhood_and_its_tables(opened: Any) -> None:
    from selenium.webdriver.common.action_chains import ActionChains

    keys(opened, "0")
    moves(opened)
    x, y = opened.execute_script(SCREEN, "h0")
    canvas = find(opened, "#labels")
    box = canvas.rect
    ActionChains(opened).move_to_element_with_offset(
        canvas, round(x - box["width"] / 2), round(y - box["height"] / 2)
    ).click().perform()
    panel = find(opened, "#panel")
    assert find(opened, "#panel h2").text == "h0"
    assert {"Tells most about", "Given h0"} <= {
        h.text for h in panel.find_elements("css selector", "h3")
    }
    neighbour = panel.find_elements("css selector", "svg .neighbour")[0]
    name = neighbour.get_attribute("data-node")
    neighbour.click()
    moves(opened)
    assert find(opened, "#panel h2").text == name
    keys(opened, "\ue00c")


def test_the_slider_changes_topics_and_colours(opened: Any) -> None:
    before = opened.execute_script(COLOURS)
    assert len(opened.find_elements("css selector", "#legend li")) == 2
    find(opened, "#level").send_keys("\ue014")
    assert find(opened, "#level-text").text == "3"
    assert len(opened.find_elements("css selector", "#legend li")) == 3
    assert opened.execute_script(COLOURS) != before


def test_colours_by_labels_and_by_numbers(opened: Any) -> None:
    from selenium.webdriver.support.ui import Select

    Select(find(opened, "#colour")).select_by_visible_text("kind")
    entries = opened.find_elements("css selector", "#legend li button")
    assert [e.text.split("\n")[0] for e in entries] == ["food", "music", "sport"]
    entries[0].click()  # only food is not faded
    alpha = np.array(opened.execute_script(COLOURS)).reshape(-1, 4)[:, 3]
    assert (alpha == 255).sum() == 4
    keys(opened, "\ue00c")
    Select(find(opened, "#colour")).select_by_visible_text("place")
    assert find(opened, "#legend .ramp").text.split() == ["0.5", "11.5"]
    Select(find(opened, "#colour")).select_by_visible_text("topic")


def test_dark_and_about(opened: Any) -> None:
    keys(opened, "d")
    assert opened.execute_script(STATE, "theme") == "dark"
    keys(opened, "d", "?")
    assert "What a tree does not tell" in find(opened, "#about").text
    keys(opened, "\ue00c")
    assert not find(opened, "#about").is_displayed()


def test_wheel_and_drag_move_the_map(opened: Any) -> None:
    from selenium.webdriver.common.action_chains import ActionChains

    view = "const v = window.latenttree.view; return [v.x, v.y, v.scale]"
    keys(opened, "0")
    moves(opened)
    before = opened.execute_script(view)
    canvas = find(opened, "#labels")
    drag = ActionChains(opened).click_and_hold(canvas).move_by_offset(30, 20)
    drag.move_by_offset(30, 20).release().perform()
    dragged = opened.execute_script(view)
    assert dragged[0] == pytest.approx(before[0] - 60 / before[2], abs=0.1)
    keys(opened, "+")
    assert opened.execute_script(view)[2] > before[2]


@pytest.mark.parametrize("webgl", [True, False])
def test_names_are_text_never_markup(tmp_path: Path, webgl: bool) -> None:
    X = survey().iloc[:, :6]
    X.columns = [*WICKED[:5], "plain"]
    fitted(X).to_html(tmp_path / "tree.html", color_by=dict.fromkeys(WICKED[:5], "<i>x</i>"))
    with browser() as driver:
        open_page(driver, tmp_path / "tree.html", webgl=webgl)
        for name in X.columns:
            driver.execute_script(
                "latenttree.select(latenttree.tree.names.indexOf(arguments[0]), false)", name
            )
            shown = driver.execute_script("return document.querySelector('#panel h2').textContent")
            assert shown == name
        assert not driver.find_elements("css selector", "#panel b, #legend i:not(.mark)")
        assert (driver.execute_script("return latenttree.renderer.kind") == "WebGL 2") == webgl
        assert console_errors(driver) == []


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [
        {"family": "mixed"},
        {"hidden": "gaussian", "family": "gaussian"},
        {"n_states": 3, "n_categories": 30},
    ],
)
def test_every_node_of_every_family_can_be_shown(options: dict[str, Any], tmp_path: Path) -> None:
    data = make_latent_tree(9, n_samples=600, random_state=0, edge_length=0.3, **options)
    hidden = options.get("hidden", "categorical")
    model = fitted(data.X, hidden=hidden, n_states="auto")
    model.to_html(tmp_path / "tree.html")
    with browser(400, 800, dark=True) as driver:
        open_page(driver, tmp_path / "tree.html")
        for v in range(model.tree_.n_nodes):
            driver.execute_script("latenttree.select(arguments[0], false)", v)
            text = find(driver, "#panel").text
            assert "NaN" not in text
            assert "undefined" not in text
        assert console_errors(driver) == []
