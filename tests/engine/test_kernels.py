"""Where compiled kernels are kept, and when they are made anew."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

from latenttree.engine import kernels
from latenttree.engine.kernels import kernel, kernel_folder, kernel_sources

SOURCE = Path(kernels.__file__).parents[2]


@kernel
def doubled(x):  # type: ignore[no-untyped-def]
    """A kernel of this file."""
    return 2 * x


def write(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def test_sources_are_kernels_and_what_they_import(tmp_path: Path) -> None:
    package = write(
        tmp_path,
        {
            "a.py": "from latenttree.b import SIZE\nfrom latenttree.c.d import f\n@kernel\n",
            "b.py": "SIZE = 3",
            "c/d.py": "@kernel(inline='always')\ndef f(): ...",
            "other.py": "text = 'no @kernel here'",
        },
    )
    names = [path.relative_to(package).as_posix() for path in kernel_sources(package)]
    assert names == ["a.py", "b.py", "c/d.py"]


def test_a_changed_source_has_another_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernels, "PACKAGE", write(tmp_path, {"a.py": "@kernel\ndef g(): ..."}))
    before = kernels._digest()
    assert kernels._digest() == before
    write(tmp_path, {"a.py": "@kernel\ndef g(): return 1"})
    assert kernels._digest() != before


def test_every_processor_has_its_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    before = kernels._digest()
    monkeypatch.setattr(kernels.config, "CPU_NAME", "another")
    assert kernels._digest() != before


def test_old_folders_go_but_the_newest(tmp_path: Path) -> None:
    names = [f"{kernels.PREFIX}{i}" for i in range(kernels.KEPT_FOLDERS + 3)]
    for when, name in enumerate(names):
        (tmp_path / name).mkdir()
        os.utime(tmp_path / name, (when, when))
    (tmp_path / "something-else").mkdir()
    kernels._drop_old(tmp_path, tmp_path / names[-1])
    left = sorted(path.name for path in tmp_path.iterdir())
    assert left == [*names[-1 - kernels.KEPT_FOLDERS :], "something-else"]


def test_the_first_folder_that_can_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    monkeypatch.setattr(kernels, "_bases", lambda: iter([blocked / "below", tmp_path / "open"]))
    folder = kernel_folder.__wrapped__()
    assert folder is not None
    assert folder.parent == tmp_path / "open"


def test_a_temporary_folder_of_others_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernels.tempfile, "gettempdir", lambda: str(tmp_path))
    found = kernels._private_temporary()
    assert found is not None
    assert found.parent == tmp_path
    found.chmod(0o777)  # others could put code there
    if os.name != "nt":
        assert kernels._private_temporary() is None


def is_compiled(node: ast.stmt) -> bool:
    decorators = node.decorator_list if isinstance(node, ast.FunctionDef) else []
    declares = ("kernel", "subroutine", "overload")
    return any(word in ast.unparse(d) for d in decorators for word in declares)


def subroutines() -> set[str]:
    """`module.name` of every subroutine."""
    package = SOURCE / "latenttree"
    return {
        f"{'.'.join(path.relative_to(SOURCE).with_suffix('').parts)}.{node.name}"
        for path in package.rglob("*.py")
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.FunctionDef)
        if any(ast.unparse(d).startswith("subroutine") for d in node.decorator_list)
    }


def test_only_kernels_call_subroutines() -> None:
    """A call from Python would end the process."""
    known = subroutines()
    assert known
    folders = [SOURCE / "latenttree", Path(__file__).parents[1]]
    for path in (p for folder in folders for p in folder.rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        inside = path.is_relative_to(SOURCE)
        own = ".".join(path.relative_to(SOURCE).with_suffix("").parts) if inside else path.stem
        names = {name.rsplit(".", 1)[1] for name in known if name.rsplit(".", 1)[0] == own}
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom):
                module = node.module
                names |= {a.asname or a.name for a in node.names if f"{module}.{a.name}" in known}
        for top in tree.body:
            if not is_compiled(top) and not isinstance(top, ast.ImportFrom):
                used = {n.id for n in ast.walk(top) if isinstance(n, ast.Name)} & names
                assert not used, f"{path.name}:{top.lineno} uses {sorted(used)} from Python"


def run(code: str, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Python code in a fresh process that imports these sources."""
    return subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"PYTHONPATH": str(SOURCE)} | environment,
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def test_nowhere_to_write_is_said_once_and_no_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    code = (
        "import latenttree.structure.sweeps; import numpy as np; "
        "from latenttree.structure.builder import mix_bits; "
        "print(mix_bits(np.uint64(1)))"
    )
    done = run(code, tmp_path, NUMBA_CACHE_DIR=str(tmp_path / "file" / "below"))
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip().isdigit()
    assert done.stderr.count("compiled kernels cannot be kept") == 1


def test_folder_of_a_user_without_a_home(tmp_path: Path) -> None:
    """A package folder and a home that cannot be written: kernels go to the temporary files."""
    code = (
        "from pathlib import Path; from latenttree.engine import kernels; "
        "kernels.PACKAGE = Path('/dev/null'); kernels._digest = lambda: 'x'; "
        "print(kernels.kernel_folder())"
    )
    done = run(
        code,
        tmp_path,
        HOME="/dev/null",
        XDG_CACHE_HOME="",
        TMPDIR=str(tmp_path),
        NUMBA_CACHE_DIR="",
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(str(tmp_path))


def test_a_full_disk_and_damaged_files_do_not_stop_a_kernel(tmp_path: Path) -> None:
    assert doubled(3) == 6
    cache = doubled._cache

    class Broken:
        def save(self, *_: object) -> None:
            raise OSError(28, "No space left on device")

        def load(self, *_: object) -> None:
            raise EOFError

    whole = cache._cache_file
    try:
        cache._cache_file = Broken()
        assert doubled(1.5) == 3.0
        assert doubled(2.5) == 5.0
    finally:
        cache._cache_file = whole
