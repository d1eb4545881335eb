"""The site: its links, and that it publishes no reference. What builds it is long and runs in make soak."""

import html
import importlib
import json
import re
import sys
from html.parser import HTMLParser
from importlib.util import find_spec

import pytest

from docs.links import REPOSITORY, broken, rewritten
from labs_helpers.course.stub import cell_of
from labs_helpers.labs import LABS, ROOT
from labs_helpers.launch.process import run

PUBLISHED = {"notebooks/00_start_here.ipynb": "notebooks/00_start_here.ipynb"}


@pytest.mark.parametrize("source, link, target", [
    ("README.md", "notebooks/00_start_here.ipynb", "notebooks/00_start_here.ipynb"),
    ("README.md", "results", f"{REPOSITORY}/tree/main/results"),
    ("notebooks/02_fused_gemm.ipynb", "../labs_helpers/labs.py#L3", f"{REPOSITORY}/blob/main/labs_helpers/labs.py#L3"),
    ("notebooks/02_fused_gemm.ipynb", "00_start_here.ipynb#waves", "00_start_here.ipynb#waves"),
    ("notebooks/02_fused_gemm.ipynb", "https://arxiv.org/abs/2307.08691", "https://arxiv.org/abs/2307.08691"),
])  # fmt: skip
def test_a_link_leads_to_a_page_or_to_the_repository(source, link, target, tmp_path):
    text = "See [`it`]({}), `[not](this)` and\n```\n[nor](that)\n```\n"
    assert rewritten(text.format(link), source, PUBLISHED, tmp_path) == text.format(target)


def test_a_link_to_nothing_is_an_error(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"README.md links to nowhere.py, which does not exist"):
        rewritten("[it](nowhere.py)", "README.md", {}, tmp_path)


def test_links_of_pages_are_followed(tmp_path):
    (tmp_path / "a.html").write_text('<a id="x" href="b.html#y"></a><a href="#x"></a><a href="https://c.de"></a>')
    (tmp_path / "b.html").write_text('<a href="a.html#z"></a><img src="d.png">')
    assert sorted(broken(tmp_path)) == [
        "a.html: b.html#y points to a missing anchor",
        "b.html: a.html#z points to a missing anchor",
        "b.html: d.png points to a missing file",
    ]


class Page(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.texts, self.images = [], []
        self.feed(text)

    def handle_data(self, data):
        self.texts.append(data)

    def handle_starttag(self, tag, attributes):
        if tag == "img":
            self.images.append(dict(attributes))


def answers():
    """(id, the lines of its reference that no cell shows) for each exercise, those for transfer included."""
    cells = [cell for lab in LABS for cell in json.loads(lab.path.read_text())["cells"]]
    shown = squeezed(html.unescape("".join("".join(cell["source"]) for cell in cells)))
    for lab in LABS:
        transfer = getattr(importlib.import_module(lab.transfer), re.sub(r".*\.ex\d+_", "", lab.transfer))
        for exercise in lab.exercises():
            reference = exercise.reference or transfer
            body = re.search(r"### BEGIN SOLUTION\n(.*?)### END SOLUTION", cell_of(reference), re.DOTALL)[1]
            lines = [squeezed(line) for line in body.splitlines()]
            yield exercise.id, [line for line in lines if len(line) > 20 and line not in shown]


def squeezed(text):
    return re.sub(r"\s", "", text)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    if not all(map(find_spec, ("furo", "myst_nb"))):
        pytest.skip("needs Sphinx with myst-nb and furo: pip install -e '.[site]'")
    out = tmp_path_factory.mktemp("site")
    run([sys.executable, "-m", "docs.build", out], timeout=1200, cwd=ROOT)  # which follows every link
    return {path.relative_to(out / "html").as_posix(): Page(path.read_text()) for path in out.glob("html/**/*.html")}


@pytest.mark.soak
def test_it_has_every_lab_and_publishes_no_reference(site):
    assert {f"notebooks/{lab.path.stem}.html" for lab in LABS} | {"index.html", "glossary.html"} <= set(site)
    said = squeezed("".join(text for page in site.values() for text in page.texts))
    known = dict(answers())
    assert sum(map(bool, known.values())) > 0.9 * len(known)  # of nearly all there is something to look for
    assert {id for id, lines in known.items() if any(line in said for line in lines)} == set()


@pytest.mark.soak
def test_its_pictures_have_alternative_texts_and_no_page_shows_a_source(site):
    assert {name for name, page in site.items() for image in page.images if not image.get("alt")} == set()
    assert not [name for name in site if name.startswith(("_modules", "_sources"))]
