"""A page in headless Chromium: opened, driven, asked for errors, requests and frame times.

Needs selenium and Chromium with its driver (`pip install 'latenttree[browser]'`,
`apt-get install chromium chromium-driver`). WebGL is computed on the processor where there is no
graphics card.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

PAN = """
const [frames, done] = arguments;
const page = window.latenttree;
const times = [], intervals = [];
let last = performance.now(), count = 0;
const step = () => {
  const start = performance.now();
  intervals.push(start - last);
  last = start;
  page.view.pan(count % 2 ? 7 : -5, count % 3 ? 4 : -6);
  page.renderer.draw(page.view, [255, 255, 255]);
  page.labels.draw(page.view, page.labelState());
  const asked = performance.now();
  page.renderer.finish();
  times.push([asked - start, performance.now() - start]);
  if (++count < frames) requestAnimationFrame(step);
  else done({ times: times.slice(2), intervals: intervals.slice(2), kind: page.renderer.kind });
};
requestAnimationFrame(step);
"""
"""Pans and draws in each frame; times until the calls are made, and until the picture is there."""


def missing() -> str | None:
    """Why no browser can be driven here; None where one can."""
    if chromium() is None or shutil.which("chromedriver") is None:
        return "no Chromium with its driver"
    try:
        import selenium  # noqa: F401
    except ImportError:
        return "no selenium"
    return None


def chromium() -> str | None:
    """The program."""
    found = (shutil.which(name) for name in ("chromium", "chromium-browser", "google-chrome"))
    return next((path for path in found if path), None)


@contextmanager
def browser(
    width: int = 1400, height: int = 900, *, webgl: bool = True, dark: bool = False
) -> Iterator[Any]:
    """A driver of selenium, closed at the end."""
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = str(chromium())
    gl = ("--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--ignore-gpu-blocklist")
    flags = (
        "--headless=new",
        "--no-sandbox",
        "--hide-scrollbars",
        f"--window-size={width},{height}",
    )
    for flag in (*flags, *(gl if webgl else ("--disable-gpu", "--disable-3d-apis"))):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options, Service(shutil.which("chromedriver")))
    try:
        driver.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride",
            {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600},
        )
        if dark:
            scheme = {"features": [{"name": "prefers-color-scheme", "value": "dark"}]}
            driver.execute_cdp_cmd("Emulation.setEmulatedMedia", scheme)
        yield driver
    finally:
        driver.quit()


def open_page(driver: Any, path: Path, *, webgl: bool = True, seconds: float = 30.0) -> None:
    """Open a page from a file, and wait until it is drawn, by WebGL even on the processor."""
    from selenium.webdriver.support.ui import WebDriverWait

    driver.get(path.resolve().as_uri() + "?draw=webgl" * webgl)
    ready = "return document.documentElement.dataset.ready === 'yes'"
    WebDriverWait(driver, seconds, 0.05).until(lambda d: d.execute_script(ready))


def console_errors(driver: Any) -> list[str]:
    """What the page has written to the console."""
    texts = [str(entry["message"]) for entry in driver.get_log("browser")]
    return [text for text in texts if "willReadFrequently" not in text]  # of `pan`, not the page


def requests(driver: Any) -> list[str]:
    """Addresses that the page has asked for, but for the file itself and data inside it."""
    events = (json.loads(entry["message"])["message"] for entry in driver.get_log("performance"))
    sent = (e for e in events if e["method"] == "Network.requestWillBeSent")
    urls = [str(event["params"]["request"]["url"]) for event in sent]
    return [url for url in urls if not url.startswith(("file:", "data:", "blob:", "about:"))]


def pan(driver: Any, frames: int = 60) -> dict[str, Any]:
    """Milliseconds of frames while the map is panned: see `PAN`."""
    driver.set_script_timeout(120)
    result: dict[str, Any] = driver.execute_async_script(PAN, frames)
    return result
