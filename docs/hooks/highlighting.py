"""Adds the style sheet that colours code, made by Pygments: the site takes no script from anywhere else for it."""

from __future__ import annotations

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from pygments.formatters import HtmlFormatter

STYLE_SHEET = "styles/highlighting.css"


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the style sheet, which `extra_css` of `mkdocs.yml` names."""
    rules = HtmlFormatter(style="default").get_style_defs(".codehilite")
    files.append(File.generated(config, STYLE_SHEET, content=rules))
    return files
