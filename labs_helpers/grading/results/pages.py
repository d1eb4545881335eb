"""Shared parts of the grading pages: their style, and the escaping of text that others wrote.

A page is one file without a script, and its Content-Security-Policy stops a browser from loading or running anything.
"""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote

from jinja2 import Environment, StrictUndefined, Template

from labs_helpers.grading.results.gradebook import record_path
from labs_helpers.grading.results.plain_text import number, plain

HEAD = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<meta name="robots" content="noindex">
<style>
  :root { color-scheme: light dark; --ink: #22252a; --faint: #5f646d; --paper: #fff; --card: #f6f5f1; --rule: #d9d7d0;
    --right: #00714f; --wrong: #b34700; --open: #5f646d; --bar: #0072b2; }
  @media (prefers-color-scheme: dark) { :root { --ink: #e8e6e1; --faint: #a5a9b1; --paper: #16181c; --card: #1f2228;
    --rule: #3a3e46; --right: #3ecf9b; --wrong: #ff9a52; --open: #a5a9b1; --bar: #56b4e9; } }
  * { box-sizing: border-box; }
  body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); max-width: 62rem;
    margin: 2rem auto; padding: 0 1rem; overflow-wrap: anywhere; }
  h1 { font-size: 1.5rem; line-height: 1.25; margin: 0; } h2 { font-size: 1.15rem; margin: 2.2rem 0 .4rem; }
  a { color: var(--bar); } p { margin: .4rem 0; }
  .faint, th, caption { color: var(--faint); font-weight: normal; }
  .right { color: var(--right); } .wrong { color: var(--wrong); } .open { color: var(--open); }
  .points { font-variant-numeric: tabular-nums; white-space: nowrap; }
  table { border-collapse: collapse; width: 100%; } th { text-align: left; font-size: .85rem; vertical-align: bottom; }
  td, th { padding: .25rem .8rem .25rem 0; border-bottom: 1px solid var(--rule); vertical-align: top; }
  td.points, th.points { text-align: right; } caption { text-align: left; font-size: .85rem; }
  .wide { overflow-x: auto; }
  @media print { :root { color-scheme: light; --ink: #000; --faint: #444; --paper: #fff; --card: #fff; --rule: #bbb;
    --right: #00573d; --wrong: #8a3600; --open: #444; --bar: #005a8c; }
    body { font-size: 10.5pt; max-width: none; margin: 0; padding: 0; } h2 { break-after: avoid; } }
"""


def file_stem(student: str) -> str:
    """Return the file name, without suffix, for any student's id: the one that gradebook gives the record."""
    return record_path(Path(), student).name.removesuffix(".jsonl")


def feedback_link(student: str) -> str:
    """Return the link from the class's page to a student's."""
    return f"feedback/{quote(file_stem(student), safe='')}.html"


def template(style: str, body: str) -> Template:
    """Return a page of HEAD with its own style, and a body in which every value is escaped."""
    environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=StrictUndefined)
    environment.filters |= {"plain": plain, "number": number}
    return environment.from_string(f"{HEAD}{style}</style>\n{body}")
