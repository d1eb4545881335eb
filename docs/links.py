"""Rewrite the repository's links for the site's pages, and check the internal links of the built pages."""

import re
import shutil
import tomllib
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

from labs_helpers.labs import ROOT

REPOSITORY = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["urls"]["Repository"]
CODE = r"```.*?```|`[^`\n]*`"
HREF = re.compile(r'<a href="(?![a-z]+:|#)([^"#]+)')  # Markdown inside HTML, such as a hint, has no other links
LINK = re.compile(rf"{CODE}|(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\((?![a-z]+:|#)([^\s)#]+)(#[^\s)]*)?\)", re.DOTALL)


def rewritten(text: str, source: str, published: dict[str, str], pages: Path) -> str:
    """Return the Markdown of the repository's file `source`, with relative links to a page, a copied picture, or
    GitHub.

    published: a file of the repository → its page. Code stays unchanged. Raises FileNotFoundError for a link to a
    missing file.
    """

    def follow(link: re.Match) -> str:
        picture, words, target, anchor = link.groups("")
        if not target:  # code
            return link[0]
        return f"{picture}[{words}]({place(target, picture)}{anchor})"

    def place(target: str, picture: str = "") -> str:
        path = (ROOT / source).parent.joinpath(unquote(target)).resolve()
        if not path.exists() or not path.is_relative_to(ROOT):
            raise FileNotFoundError(f"{source} links to {target}, which does not exist")
        name = path.relative_to(ROOT).as_posix()
        if picture:
            (pages / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, pages / name)
        elif name not in published:
            target = f"{REPOSITORY}/{'tree' if path.is_dir() else 'blob'}/main/{name}"
        return target

    return HREF.sub(lambda link: f'<a href="{place(link[1])}', LINK.sub(follow, text))


class _Page(HTMLParser):
    """The internal links of a page, and the anchors that links can target."""

    def __init__(self, text: str):
        super().__init__()
        self.links, self.places = set(), {""}
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self.places |= {given[key] for key in ("id", "name") if given.get(key)}
        for key in ("href", "src"):
            if given.get(key) and not urlsplit(given[key]).scheme and not given[key].startswith("//"):
                self.links.add(given[key])


def broken(html: Path) -> list[str]:
    """Return one sentence per internal link of the built pages whose file or anchor does not exist."""
    pages = {path: _Page(path.read_text()) for path in html.rglob("*.html")}
    found = []
    for path, page in pages.items():
        for link in sorted(page.links):
            parts = urlsplit(link)
            to = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if not to.exists():
                found.append(f"{path.relative_to(html)}: {link} points to a missing file")
            elif to in pages and unquote(parts.fragment) not in pages[to].places:
                found.append(f"{path.relative_to(html)}: {link} points to a missing anchor")
    return found
