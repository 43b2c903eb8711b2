"""The documentation site: `make docs` builds it with warnings as errors.

Pages are Markdown (MyST). The API reference comes from docstrings, and the reference of the command
line from the commands themselves, so neither can fall behind the code.
"""

from __future__ import annotations

from pathlib import Path

import typer
import typer.main
from typer.cli import get_docs_for_click

import headgate
from headgate.cli.app import app

project = "Headgate"
author = "The Headgate developers"
copyright = "The Headgate developers, Apache-2.0"
version = release = headgate.__version__

extensions = [
    "myst_parser",
    "sphinx_design",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
]
exclude_patterns = ["_build"]
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3
default_role = "code"

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
napoleon_google_docstring = False
autosummary_generate = True

html_theme = "pydata_sphinx_theme"
html_title = "Headgate"
html_show_sourcelink = False
html_theme_options = {"navigation_with_keys": False, "show_toc_level": 2}


def _write_command_reference() -> None:
    """Write the page on the command line from the commands' own help."""
    context = typer.Context(typer.main.get_command(app), info_name="headgate")
    text = get_docs_for_click(obj=context.command, ctx=context, name="headgate")
    page = Path(__file__).parent / "reference" / "_commands.md"
    page.write_text(text, encoding="utf-8")


_write_command_reference()
