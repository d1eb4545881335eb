"""Roles: each has a color and a marker, and a use."""

from pathlib import Path

import pytest
from matplotlib.colors import is_color_like, to_rgb

import labs_helpers
from labs_helpers.draw import roles
from labs_helpers.draw.curves import Curves


def luminance(color) -> float:
    parts = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in to_rgb(color)]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), parts, strict=True))


def test_every_role_has_a_colour_and_a_marker():
    for role in [*roles.ROLES, *range(8)]:
        assert is_color_like(roles.color(role)) and roles.marker(role) in roles.MARKERS
    with pytest.raises(KeyError):
        roles.color("mine")


def test_every_role_has_a_use():
    library = Path(labs_helpers.__file__).parent
    sources = "".join(path.read_text() for path in library.rglob("*.py") if path.name != "roles.py")
    assert not [role for role in roles.ROLES if f'"{role}"' not in sources]


def test_text_on_ranks_and_dark_grounds_can_be_read():
    for rank in range(len(roles.RANKS)):
        assert (luminance(roles.rank_color(rank)) + 0.05) / 0.05 > 4.5
    for role in ("threads", "registers", "cache", "DRAM", "arithmetic"):
        assert 1.05 / (luminance(roles.color(role)) + 0.05) > 3.4
    assert roles.text_on(roles.color("ours")) == "white" and roles.text_on(roles.color("one")) == roles.INK
    assert roles.rank_color(len(roles.RANKS)) == roles.rank_color(0)


def test_a_curve_takes_its_role_s_look_and_an_unknown_one_is_grey():
    curves = Curves({"our kernel": "ours", "third": 2, "marked": ("theirs", "P")})
    assert curves.color("our kernel") == roles.color("ours") and curves.marker("our kernel") == "o"
    assert (curves.color("third"), curves.marker("third")) == (roles.color(2), "D")
    assert (curves.color("marked"), curves.marker("marked")) == (roles.color("theirs"), "P")
    assert curves.color("new") == roles.color("aside")
