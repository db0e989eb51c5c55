"""How Sphinx builds these pages: `make docs`."""

from __future__ import annotations

import sys
from pathlib import Path

import latenttree

# autodoc imports what pages name: modules that the package shows under shorter names.
for _name in ("baselines", "datasets", "metrics"):
    sys.modules[f"latenttree.{_name}"] = getattr(latenttree, _name)

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_extensions"))
from made_up_patients import write_patients  # noqa: E402

write_patients(HERE / "examples" / "guide" / "patients.csv")

project = "latenttree"
author = "latenttree developers"
project_copyright = author
version = release = latenttree.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_gallery.gen_gallery",
    "docstring_sections",
    "executed_commands",
    "math_as_mathml",
]
exclude_patterns = ["_build", "_templates", "examples"]
templates_path = ["_templates"]
html_math_renderer = "mathml"
default_role = "name"
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
autodoc_typehints = "none"
autosummary_generate = True

html_theme = "pydata_sphinx_theme"
html_title = "latenttree"
html_static_path = ["_static"]
html_css_files = ["pages.css"]
html_show_sourcelink = False
html_sidebars = {"index": [], "glossary": [], "changelog": []}
html_theme_options = {
    "navigation_with_keys": False,
    "show_toc_level": 2,
    "header_links_before_dropdown": 5,
    "show_prev_next": False,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
}

sphinx_gallery_conf = {
    "examples_dirs": ["examples/guide", "examples/howto"],
    "gallery_dirs": ["guide", "howto"],
    "filename_pattern": r"\.py$",
    "copyfile_regex": r".*\.csv",
    "within_subsection_order": "page_order.place_of",
    "abort_on_example_error": True,
    "download_all_examples": False,
    "show_memory": False,
    "show_signature": False,
    "min_reported_time": 1e9,
    "remove_config_comments": True,
    "capture_repr": ("_repr_html_", "__repr__"),
    "ignore_repr_types": r"matplotlib|.*Path",
    "thumbnail_size": (400, 280),
    "write_computation_times": False,
}
