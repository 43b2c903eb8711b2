"""The documentation site: `make docs` builds it with warnings as errors.

Pages are Markdown (MyST). The API reference comes from docstrings, and the reference of the command
line from the commands themselves, so neither can fall behind the code.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import click
import typer
import typer.main
from sphinx.application import Sphinx
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
exclude_patterns = ["_build", "_templates", "reference/_commands.md"]
templates_path = ["_templates"]
html_static_path = ["_static"]
html_css_files = ["site.css"]
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3
default_role = "code"
smartquotes = False
suppress_warnings = ["ref.python"]  # `bytes` is a type, and a property of two classes

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_preserve_defaults = True
napoleon_google_docstring = False
napoleon_use_ivar = True
autosummary_generate = True
python_maximum_signature_line_length = 80

html_theme = "pydata_sphinx_theme"
html_title = "Headgate"
html_show_sourcelink = False
html_theme_options = {"navigation_with_keys": False, "show_toc_level": 2}


def _write_command_reference() -> None:
    """Write the page on the command line from the commands' own help."""
    context = typer.Context(typer.main.get_command(app), info_name="headgate")
    text = get_docs_for_click(obj=context.command, ctx=context, name="headgate")
    page = Path(__file__).parent / "reference" / "_commands.md"
    page.write_text(_complete_summaries(text, context.command), encoding="utf-8")


def _complete_summaries(text: str, command: click.Command) -> str:
    """Replace the summaries in the lists of commands, which are cut off, by whole paragraphs."""
    for name, child in getattr(command, "commands", {}).items():
        summary = " ".join((child.help or "").split("\n\n")[0].split())
        text = re.sub(rf"^\* `{name}`: .*$", f"* `{name}`: {summary}", text, flags=re.MULTILINE)
        text = _complete_summaries(text, child)
    return text


_write_command_reference()
# Sphinx writes these pages again; one of a name that is no longer public would be a warning.
shutil.rmtree(Path(__file__).parent / "reference" / "generated", ignore_errors=True)


def _trim_examples(_app: Sphinx, _page: str, source: list[str]) -> None:
    """Remove the blank line before the end of a code block, which a doctest needs and we do not."""
    source[0] = source[0].replace("\n\n```\n", "\n```\n")


def setup(app: Sphinx) -> None:
    app.connect("source-read", _trim_examples)
