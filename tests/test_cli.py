"""The command line, run in process and once for real."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner, Result

from latenttree import __version__, cli
from latenttree.io.treefile import load_tree, save_tree
from latenttree.tree import Tree

#   a     c
#    \   /
#    h0-h1
#    /   \
#   b     [d]
TREE = Tree.build(["a", "b", "c", "[d]"], [(0, 4), (1, 4), (4, 5), (2, 5), (3, 5)], [1.0] * 5)


@pytest.fixture(autouse=True)
def _wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("NO_COLOR", "1")


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(cli.app, [str(a) for a in arguments])


def refused(result: Result) -> str:
    """The one line on stderr of a command that was refused."""
    assert result.exit_code == 2, result.output
    assert result.stderr.startswith("error: ")
    assert result.stderr.count("\n") == 1
    assert "Traceback" not in result.output
    return result.stderr


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Nine binary columns in three groups of three, 4,000 samples.

    Each group copies its own hidden bit, and the three bits copy a common one, each with 10%
    of flips: cousins correlate at 0.8^4 = 0.41 and brothers at 0.8^2 = 0.64, which is 14
    standard errors (0.016) apart, so the groups cannot be missed.
    """
    rng = np.random.default_rng(0)

    def copy(bits: np.ndarray) -> np.ndarray:
        return bits ^ (rng.random(bits.shape) < 0.1)

    root = rng.integers(0, 2, 4000)
    columns = [copy(hidden) for hidden in (copy(root) for _ in range(3)) for _ in range(3)]
    path = tmp_path / "table.csv"
    header = ",".join(f"{group}{i}" for group in "abc" for i in range(3))
    np.savetxt(path, np.column_stack(columns), "%d", delimiter=",", header=header, comments="")
    return path


# ---- help -----------------------------------------------------------------------------


def test_help_names_the_commands() -> None:
    result = run("--help")
    assert result.exit_code == 0
    for command in ("demo", "fit", "show"):
        assert command in result.output
        assert run(command, "--help").exit_code == 0


def test_version() -> None:
    assert run("--version").output == f"latenttree {__version__}\n"


def test_unknown_command_is_a_usage_error() -> None:
    assert run("learn").exit_code == 2


# ---- show -----------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", [".json", ".ltree", ".nwk"])
def test_show(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"tree{suffix}"
    save_tree(path, TREE)
    result = run("show", path)
    assert result.exit_code == 0, result.output
    assert "4 observed variables, 2 hidden variables" in result.output
    assert TREE.draw() in result.output
    assert re.search(r"h1 +2 +c  \[d\]", result.output)


def test_show_draws_large_trees_only_on_request(tmp_path: Path) -> None:
    star = Tree.build([f"x{i}" for i in range(300)], [(i, 300) for i in range(300)], [1.0] * 300)
    path = tmp_path / "star.json"
    save_tree(path, star)
    assert "x299" not in run("show", path).output
    assert "x299" in run("show", path, "--draw").output


def test_show_plots(tmp_path: Path) -> None:
    save_tree(tmp_path / "tree.json", TREE)
    for layout in ("radial", "top_down"):
        picture = tmp_path / f"{layout}.svg"
        result = run("show", tmp_path / "tree.json", "--plot", picture, "--layout", layout)
        assert result.exit_code == 0, result.output
        assert "<svg" in picture.read_text()


def test_show_refuses(tmp_path: Path) -> None:
    assert "nothing.json: No such file" in refused(run("show", tmp_path / "nothing.json"))
    (tmp_path / "bad.json").write_text("{}")
    assert "bad.json holds no valid tree" in refused(run("show", tmp_path / "bad.json"))
    save_tree(tmp_path / "tree.json", TREE)
    line = refused(run("show", tmp_path / "tree.json", "--plot", tmp_path / "tree.doc"))
    assert "'tree.doc' is no picture file; end it in .png, .pdf or .svg" in line


# ---- fit ------------------------------------------------------------------------------


def test_fit(table: Path, tmp_path: Path) -> None:
    out, picture = tmp_path / "tree.ltree", tmp_path / "tree.png"
    result = run("fit", table, "-o", out, "--seed", "0", "--threads", "1", "--plot", picture)
    assert result.exit_code == 0, result.output + result.stderr
    assert "4,000 samples of 9 variables" in result.output
    assert "9 observed variables" in result.output
    assert picture.read_bytes().startswith(b"\x89PNG")
    saved = load_tree(out)
    for group in "abc":
        (parent,) = {int(saved.tree.neighbors(f"{group}{i}")[0]) for i in range(3)}
        assert parent >= saved.tree.n_observed
    assert saved.n_states == 2
    assert saved.stage_seconds
    assert run("show", out).exit_code == 0


def test_fit_writes_newick_and_finds_the_number_of_states(table: Path, tmp_path: Path) -> None:
    out = tmp_path / "tree.nwk"
    result = run("fit", table, "-o", out, "--states", "auto", "--seed", "0")
    assert result.exit_code == 0, result.output + result.stderr
    assert Tree.from_newick(out.read_text()).n_observed == 9


def test_fit_checks_before_it_works(
    table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cli, "_fit", lambda *_, **__: pytest.fail("the work has begun"))
    out = tmp_path / "tree.json"
    assert "--states is '1'; pass 'auto'" in refused(run("fit", table, "-o", out, "--states", "1"))
    assert "end it in .json" in refused(run("fit", table, "-o", tmp_path / "tree.xml"))
    assert "does not exist" in refused(run("fit", table, "-o", tmp_path / "no" / "tree.json"))
    assert "no file" in refused(run("fit", tmp_path / "none.csv", "-o", out))
    line = refused(run("fit", table, "-o", out, "--plot", tmp_path / "no" / "tree.png"))
    assert "does not exist; create it first" in line
    assert not out.exists()


def test_fit_refuses_a_constant_column_and_drops_it_on_request(tmp_path: Path, table: Path) -> None:
    rows = table.read_text().splitlines()
    path, out = tmp_path / "constant.csv", tmp_path / "tree.json"
    path.write_text("\n".join([rows[0] + ",same"] + [row + ",7" for row in rows[1:]]))
    assert "same" in refused(run("fit", path, "-o", out))
    result = run("fit", path, "-o", out, "--drop-constant", "--seed", "0")
    assert result.exit_code == 0, result.output + result.stderr
    assert load_tree(out).tree.n_observed == 9


# ---- demo -----------------------------------------------------------------------------


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
    assert out.read_bytes().startswith(b"\x89PNG")


# ---- endings --------------------------------------------------------------------------


def test_interrupt_leaves_nothing_behind(
    table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    before = sorted(tmp_path.iterdir())
    monkeypatch.setattr(cli, "_fit", interrupted)
    result = run("fit", table, "-o", tmp_path / "tree.json")
    assert (result.exit_code, result.stderr) == (130, "interrupted\n")
    assert sorted(tmp_path.iterdir()) == before


def test_long_errors_and_warnings_take_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    import warnings

    from typer import Exit

    def work() -> None:
        with cli._clean_exit():
            warnings.warn("first\n second", stacklevel=1)
            raise ValueError("what\n  and why")

    with pytest.raises(Exit) as caught:
        work()
    assert caught.value.exit_code == 2
    assert capsys.readouterr().err == "warning: first second\nerror: what and why\n"


def test_installed_command_and_closed_pipe(tmp_path: Path) -> None:
    save_tree(tmp_path / "tree.json", TREE)
    command = f"{sys.executable} -m latenttree.cli show {tmp_path / 'tree.json'}"
    done = subprocess.run(f"{command} | head -1", shell=True, capture_output=True, text=True)
    assert "4 observed variables" in done.stdout
    assert "Traceback" not in done.stderr
