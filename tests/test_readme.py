"""The README's examples run: python blocks as scripts, pycon blocks as doctests."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

import pytest

README = Path(__file__).parents[1] / "README.md"
BLOCK = re.compile(r"^```(python|pycon)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def test_examples_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One after another in one namespace, as a reader would type them."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    text = README.read_text()
    blocks = list(BLOCK.finditer(text))
    assert blocks, "the README has no python example"
    namespace: dict[str, object] = {}
    for block in blocks:
        kind, code = block.groups()
        line = text.count("\n", 0, block.start()) + 1
        if kind == "python":
            # Blank lines in front, so that a traceback gives the line of the README.
            exec(compile("\n" * line + code, str(README), "exec"), namespace)
            continue
        example = doctest.DocTestParser().get_doctest(code, namespace, "README", str(README), line)
        runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
        runner.run(example, clear_globs=False)
        namespace = example.globs
        assert runner.failures == 0, f"README line {line}: the output differs, see above"
