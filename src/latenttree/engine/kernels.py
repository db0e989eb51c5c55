"""Compiled kernels: how they are declared, and where their machine code is kept.

`@kernel` is Numba's `njit` with the options that all kernels share and a cache that is never stale:
the name of its folder has a digest of all sources of kernels, of the compiler and of the processor.
Numba itself checks the file of a kernel alone, not the files of the kernels it calls or of the
constants that it was compiled with.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import stat
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

import llvmlite  # type: ignore[import-untyped]
import llvmlite.binding  # type: ignore[import-untyped]
import numba
import numba.core.config

try:
    from latenttree.engine.subroutines import SubroutineCompiler
except (ImportError, AttributeError):  # another Numba
    SubroutineCompiler = None  # type: ignore[assignment,misc]

config: Any = numba.core.config

PACKAGE = Path(__file__).parents[1]
PREFIX = "latenttree-kernels-"
KEPT_FOLDERS = 4
"""Folders of other sources or compilers that are kept beside the one in use."""

_DECLARES = re.compile(r"^@(kernel|subroutine)\b", re.MULTILINE)
_IMPORTS = re.compile(r"^from latenttree\.([\w.]+) import", re.MULTILINE)


def kernel(function: Callable[..., Any] | None = None, **options: Any) -> Any:
    """Compile a function at its first call: without the GIL, divisions as in NumPy, cached on disk.

    Used as `@kernel` or with further options of `numba.njit`."""
    if function is None:
        return lambda decorated: kernel(decorated, **options)
    folder = kernel_folder()
    common = {"nogil": True, "error_model": "numpy", "cache": True, "no_cfunc_wrapper": True}
    chosen: dict[str, Any] = common | options
    chosen["cache"] = chosen["cache"] and folder is not None
    with _caching_in(folder):
        dispatcher = numba.njit(**chosen)(function)
    if chosen["cache"]:
        _forgive(dispatcher._cache)
    return dispatcher


def subroutine(function: Callable[..., Any] | None = None, **options: Any) -> Any:
    """Compile a function that only kernels call, as a part of them.

    It has no machine code of its own, which makes a first fit compile less. A call from Python
    raises. Options other than those of kernels cost time: Numba compiles `min`, `np.empty` and the
    like anew for each set."""
    if SubroutineCompiler is not None:
        options["pipeline_class"] = SubroutineCompiler
    return kernel(function, cache=False, **options)


@cache
def kernel_folder() -> Path | None:
    """Folder of compiled kernels; None, with a warning, if no folder can be written.

    `NUMBA_CACHE_DIR` if it is set; else the first of these that can be written: beside the package,
    the user's folder of caches, the system's folder of temporary files."""
    name = PREFIX + _digest()
    for base in _bases():
        folder = base / name
        new = not folder.exists()
        if _can_write(folder):
            if new:
                _drop_old(base, folder)
            return folder
    warnings.warn(
        "compiled kernels cannot be kept, because no folder can be written: every process compiles "
        "them again; set NUMBA_CACHE_DIR to a folder that can be written",
        RuntimeWarning,
        stacklevel=2,
    )
    return None


def _bases() -> Iterator[Path]:
    """Folders to try, in order."""
    if config.CACHE_DIR:
        yield Path(config.CACHE_DIR)
        return
    yield PACKAGE / "__pycache__"
    with suppress(RuntimeError):  # no home
        local = "LOCALAPPDATA" if sys.platform == "win32" else "XDG_CACHE_HOME"
        yield Path(os.environ.get(local) or Path.home() / ".cache") / "latenttree"
    shared = _private_temporary()
    if shared is not None:
        yield shared


def _private_temporary() -> Path | None:
    """A folder among the temporary files that only this user can write: its files are executed."""
    user = os.getuid() if hasattr(os, "getuid") else "user"
    try:
        folder = Path(tempfile.gettempdir()) / f"latenttree-{user}"
        folder.mkdir(mode=0o700, exist_ok=True)
        status = folder.lstat()
    except OSError:
        return None
    private = stat.S_ISDIR(status.st_mode) and not status.st_mode & 0o077
    own = not hasattr(os, "getuid") or status.st_uid == os.getuid()
    return folder if own and (private or os.name == "nt") else None


def _can_write(folder: Path) -> bool:
    """Whether a folder exists, or can be made, and takes files."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError:
        return False
    return True


def _drop_old(base: Path, current: Path) -> None:
    """Remove the folders of earlier sources, except the newest few."""
    others = [path for path in base.glob(PREFIX + "*") if path != current]
    with suppress(OSError):
        others.sort(key=lambda path: path.stat().st_mtime)
        for path in others[:-KEPT_FOLDERS]:
            shutil.rmtree(path, ignore_errors=True)


def _digest() -> str:
    """A digest of everything that compiled code depends on: the files that declare kernels, the
    modules whose constants and kernels they import, the compiler, and the processor."""
    digest = hashlib.sha1(usedforsecurity=False)
    processor = config.CPU_NAME or llvmlite.binding.get_host_cpu_name()
    versions = f"{numba.__version__} {llvmlite.__version__} {sys.version} {processor}"
    digest.update(f"{versions} {config.CPU_FEATURES}".encode())
    for path in kernel_sources(PACKAGE):
        digest.update(path.relative_to(PACKAGE).as_posix().encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


def kernel_sources(package: Path) -> list[Path]:
    """The files of a package that declare kernels, and the modules that these import from."""
    sources: set[Path] = set()
    for path in package.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        if _DECLARES.search(text):
            sources.add(path)
            for name in _IMPORTS.findall(text):
                module = package.joinpath(*name.split("."))
                sources.update({module.with_suffix(".py"), module / "__init__.py"})
    return sorted(path for path in sources if path.exists())


@contextmanager
def _caching_in(folder: Path | None) -> Iterator[None]:
    """Set the folder of Numba's cache for functions that are declared inside this context."""
    before = config.CACHE_DIR
    config.CACHE_DIR = before if folder is None else str(folder)
    try:
        yield
    finally:
        config.CACHE_DIR = before


def _forgive(kept: Any) -> None:
    """Make a kernel's cache ignore a full disk and damaged files: what cannot be written or read is
    compiled again."""
    save, load = kept.save_overload, kept.load_overload

    def save_if_possible(*args: Any) -> None:
        with suppress(OSError):
            save(*args)

    def load_if_possible(*args: Any) -> Any:
        try:
            return load(*args)
        except Exception:  # whatever unpickling damaged bytes raises
            return None

    kept.save_overload, kept.load_overload = save_if_possible, load_if_possible
