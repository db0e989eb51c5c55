"""`latenttree demo`."""

from __future__ import annotations

import re
from pathlib import Path

from tests.cli.commands import (
    run,
)


def test_demo(tmp_path: Path) -> None:
    out = tmp_path / "digits.png"
    result = run("demo", "--out", out)
    assert result.exit_code == 0, result.output + result.stderr
    assert "1,797 handwritten digits" in result.output
    assert "3 pixels are blank in every digit and left out" in result.output
    assert "61 observed variables" in result.output
    share = re.search(r"for (\d+) of 61 pixels", result.output)
    assert share
    # A pixel has at most 8 of 60 others around it: chance would give 8.
    assert int(share[1]) >= 40
    digits = re.search(r"state 1 for (\d+)% of the \ds and (\d+)% of the \ds", result.output)
    assert digits
    assert int(digits[1]) - int(digits[2]) >= 80
    held_out = re.search(r"log-likelihood (\S+) for a digit, (\S+) if every", result.output)
    assert held_out
    assert float(held_out[1]) > float(held_out[2]) + 5
    assert result.stderr == ""
    assert out.read_bytes().startswith(b"\x89PNG")
