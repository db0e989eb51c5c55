"""The order of the pages in the galleries."""

from __future__ import annotations

from pathlib import Path

PAGES = [
    *[
        "idea",
        "five_minutes",
        "questions",
        "families_and_states",
        "support_and_misfit",
        "missing_data",
    ],
    *["large_data", "text", "questionnaire", "health", "returns", "phylogeny"],
    *["machine_learning", "research", "command_line", "notebook"],
]


def place_of(file_name: str) -> int:
    """The place of a page, by the name of its file."""
    return PAGES.index(Path(file_name).stem)
