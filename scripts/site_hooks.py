"""The changes of `make site` to the documents.

The README is the home page, pages for Python modules are added, and no links lead out of docs.
"""

import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parent.parent
MODULES = (
    "headway",
    "headway.api.rows",
    "headway.controllers",
    "headway.envs",
    "headway.envs.sb3",
    "headway.envs.flows",
    "headway.envs.team",
    "headway.models",
    "headway.stats",
    "headway.traces",
)
LINK = re.compile(r"(?<!!)\[([^]]+)\]\(((?:\.\./)+[^)#]+)(#[^)]*)?\)")
"""A link to a file above its page's folder."""
PATH = re.compile(r"\]\((?![a-z]+:)([^)#]+)")
"""The path of a link that is not a URL."""


def on_files(files: Files, *, config: Any) -> Files:
    """Adds the pages that have no file in docs."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    modules = "# Python modules\n\n" + "\n".join(f"::: {name}\n" for name in MODULES)
    files.append(File.generated(config, "index.md", content=home_page(readme)))
    files.append(File.generated(config, "python-modules.md", content=modules))
    return files


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    """Replaces a link that leaves docs by the file's path in the repository.

    The site does not contain the file.
    """
    folder = (ROOT / "docs" / page.file.src_path).parent

    def named(link: re.Match[str]) -> str:
        target = (folder / link[2]).resolve()
        if target.is_relative_to(ROOT / "docs"):
            return link[0]
        path = f"`{target.relative_to(ROOT)}`"
        return path if link[1].strip("`") == path.strip("`") else f"{link[1]} ({path})"

    return LINK.sub(named, markdown)


def home_page(readme: str) -> str:
    """The README for the site.

    Its paths begin at the repository's root, those of the site at docs.
    """
    return PATH.sub(lambda link: f"]({_from_docs(link[1])}", readme)


def _from_docs(path: str) -> str:
    return path.removeprefix("docs/") if path.startswith("docs/") else f"../{path}"
