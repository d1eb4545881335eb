"""The glossary: each term in two sentences, and met in the lab that it names."""

import json
import re

import pytest
import yaml

from labs_helpers.labs import ROOT, lab

ENTRIES = yaml.safe_load((ROOT / "docs/glossary.yaml").read_text())


def uses(text: str, name: str) -> bool:
    """Whether a text has each word of a name, in whatever form: 'coalescing' in 'coalesced'."""
    stems = [re.escape(word[:5]) if len(word) > 6 else re.escape(word) for word in re.split(r"[\s-]", name.lower())]
    return all(re.search(rf"(?<![a-z]){stem}", text) for stem in stems)


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry["term"])
def test_an_entry_has_two_sentences_and_its_lab_uses_the_term(entry):
    assert set(entry) <= {"term", "also", "code", "lab", "text"}
    assert re.fullmatch(r"[^\s.].*?[.] [^\s.].*?[.]", entry["text"]) and entry["text"].count(". ") == 1, entry["text"]
    cells = json.loads(lab(entry["lab"]).path.read_text())["cells"]
    said = " ".join("".join(cell["source"]) for cell in cells).lower()
    names = [entry["term"], *entry.get("also", entry["term"]).split(", "), entry.get("code", entry["term"])]
    assert any(uses(said, name) for name in names), names


def test_each_term_is_there_once_in_alphabetical_order():
    terms = [entry["term"].lower() for entry in ENTRIES]
    assert len(set(terms)) == len(terms) >= 60
    assert terms == sorted(terms)
