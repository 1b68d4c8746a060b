"""Adds pages of the repository to the site: READMEs of folders, notes on papers, the changelog.

`extra.included` of `mkdocs.yml` maps a page of the site to a file of the repository. The file is read when the site is
built, so its text exists once. Links in all pages are paths in the repository, so that they also work there; here they
become links between pages, and a link to a file that has no page becomes the file's name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from posixpath import normpath, relpath

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

LINK = re.compile(r"(?<!!)\[([^\]]*)\]\((?![a-z]+:|#)([^)#\s]+)(#[^)]*)?\)")
"""A Markdown link to a file: its text, its target, and the part of the target from `#` on."""
LAST_FOUND = ("papers/", "changelog", "reference", "contributing")
"""How pages begin that have many words of everything, which the search finds after the others."""
BAR_IN_CODE = re.compile(r"(`[^`\n]*)\\\|([^`\n]*`)")
"""An escaped bar in the code of a table. The repository's host requires the backslash; the site would show it."""


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add a page for each entry of `extra.included`."""
    root = Path(config.config_file_path).parent
    for page, source in config.extra["included"].items():
        files.append(File.generated(config, page, content=(root / source).read_text()))
        config.watch.append(str(root / source))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:  # noqa: ARG001, by name
    """Turn the page's links between files into links between pages, unescape bars in code, and rank the page."""
    if page.file.src_uri.startswith(LAST_FOUND):
        page.meta["search"] = {"boost": 0.3}
    return BAR_IN_CODE.sub(r"\1|\2", with_page_links(markdown, page.file.src_uri, config.extra["included"]))


def with_page_links(text: str, page: str, included: Mapping[str, str]) -> str:
    """Return the text of a page with links that lead to pages; `included` maps pages to files of the repository."""
    folder = PurePosixPath(included.get(page, f"docs/{page}")).parent
    pages = {source: page for page, source in included.items()}

    def to_page(link: re.Match[str]) -> str:
        path = normpath(folder / link[2])
        if path not in pages and not path.startswith("docs/"):
            return f"`{path}`"
        target = relpath(pages.get(path, path.removeprefix("docs/")), PurePosixPath(page).parent)
        return f"[{link[1]}]({target}{link[3] or ''})"

    return LINK.sub(to_page, text)


def on_post_page(output: str, page: Page, config: MkDocsConfig) -> str:  # noqa: ARG001, by name
    """Give the theme's search a name, which readers of the screen tell."""
    return output.replace('role="dialog"', 'role="dialog" aria-label="Search"')
