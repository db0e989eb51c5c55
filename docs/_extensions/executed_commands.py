"""The directive `commands`: runs its lines in a shell and shows them with what they print.

All blocks of a page run one after another in one empty folder. A command that fails, fails the
build. The option `lines` shortens a long output, `files` copies files of these pages there first.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.util.docutils import SphinxDirective

MODULE = f'"{sys.executable}" -m latenttree.cli'


class Commands(SphinxDirective):
    """Runs commands, and shows them with their output."""

    has_content = True
    option_spec: ClassVar[dict[str, Any]] = {
        "lines": directives.nonnegative_int,
        "files": directives.unchanged,
    }

    def run(self) -> list[nodes.Node]:
        """The commands and their output as a literal block."""
        folder = self._folder()
        for name in self.options.get("files", "").split():
            shutil.copy(Path(self.env.srcdir) / name, folder)
        text = "\n".join(shown(line, folder, self.options) for line in self._calls())
        return [nodes.literal_block(text, text, language="console")]

    def _calls(self) -> list[str]:
        """The commands; a line that ends in a backslash goes on in the next one."""
        return re.split(r"(?<!\\)\n", "\n".join(self.content).strip())

    def _folder(self) -> Path:
        """The folder of this page, empty at its first block."""
        page = self.env.docname
        folder = Path(self.env.app.outdir).parent / "commands" / page.replace("/", "-")
        if page not in self.env.temp_data:
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            self.env.temp_data[page] = True
        return folder


def shown(command: str, folder: Path, options: dict[str, Any]) -> str:
    """A command behind a prompt, and what it prints."""
    call = re.sub(r"\blatenttree (?=[a-z])", lambda _: f"{MODULE} ", command)
    call = re.sub(r"^python\b", lambda _: f'"{sys.executable}"', call)
    variables = os.environ | {"COLUMNS": "88", "NO_COLOR": "1", "TERM": "dumb"}
    done = subprocess.run(
        call, shell=True, cwd=folder, env=variables, capture_output=True, text=True
    )
    if done.returncode:
        raise RuntimeError(f"{command}: {done.stdout}{done.stderr}")
    printed = done.stdout.replace("python -m latenttree.cli", "latenttree").rstrip().splitlines()
    most = options.get("lines", len(printed))
    rest = ["..."] if len(printed) > most else []
    return "\n".join([f"$ {command}", *printed[:most], *rest])


def setup(app: Any) -> dict[str, bool]:
    """Called by Sphinx."""
    app.add_directive("commands", Commands)
    return {"parallel_read_safe": False}
