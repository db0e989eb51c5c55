"""How commands end: one line and an exit code for everything that a user can cause."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import typer

from latenttree.cli.wording import error_in_words, in_words


@contextmanager
def clean_exit() -> Iterator[None]:
    """Turn errors that a user can cause into one line on stderr and an exit code."""
    with warnings.catch_warnings():
        warnings.showwarning = _show_warning
        try:
            yield
        except KeyboardInterrupt:
            print("interrupted", file=sys.stderr)
            raise typer.Exit(130) from None
        except BrokenPipeError:  # `| head` closed the pipe: typer ends quietly
            raise
        except (ValueError, OSError, ImportError, MemoryError) as error:
            print(f"error: {error_in_words(error)}", file=sys.stderr)
            raise typer.Exit(getattr(error, "exit_code", 2)) from None


def _show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    text = message.args[0] if isinstance(message, Warning) and message.args else message
    print(f"warning: {in_words(text if isinstance(text, str) else str(text))}", file=sys.stderr)
