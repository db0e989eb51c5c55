"""The command line: files and options in, printed lines and files out.

`commands.py` declares the commands, `options.py` the options that they share; the file named for a
command does its work (read `fit.py` first), and is imported when it is called, so that
``latenttree --help`` answers at once. `wording.py` turns texts of the library into the words of the
command line. Errors that a user can cause are one line on stderr and exit code 2 (1 where a model
does not know the codes of the events); Ctrl-C is exit code 130. Files appear whole or not at all.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from inspect import Signature
from typing import Annotated, Any

import typer

from latenttree.cli.commands import COMMANDS
from latenttree.cli.exits import clean_exit
from latenttree.cli.options import flat_parameters, from_flat
from latenttree.cli.terminal import print_all_characters, typed

PATHS = frozenset({"roll_up", "groups"})
"""Options that begin with the name of a file, which the system must get as it was typed."""

app = typer.Typer(
    help="Learn latent tree models: which hidden variables a table has, the tree over them, and "
    "every probability.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def main() -> None:
    """Entry point of the ``latenttree`` command."""
    print_all_characters()
    app()


@app.callback(invoke_without_command=True)
def _top(
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    if version:
        from latenttree import __version__

        print(f"latenttree {__version__}")
        raise typer.Exit


def _command(options: type) -> Callable[..., None]:
    """A function for Typer that runs the module of a command."""

    @clean_exit()
    def run(**values: Any) -> None:
        given = {key: v if key in PATHS else typed(v) for key, v in values.items()}
        import_module(f"{__name__}.{options.__name__.lower()}").run(from_flat(options, given))

    parameters = list(flat_parameters(options))
    run.__doc__ = _in_paragraphs(options.__doc__ or "")
    run.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {p.name: p.annotation for p in parameters}
    return run


def _in_paragraphs(text: str) -> str:
    """A docstring without its line breaks, but for those between paragraphs."""
    return "\n\n".join(" ".join(part.split()) for part in text.split("\n\n"))


for _options in COMMANDS:
    app.command(_options.__name__.lower())(_command(_options))
