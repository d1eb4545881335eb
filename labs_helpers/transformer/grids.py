"""The points that a study measures, given as grids in YAML or on the command line.

A YAML file is a list of grids. A grid's keys are sizes, batches, lengths and seeds, the fields of `setups.Setup`, and
orders, of `setups.ORDERS`, for each setup along the way. Each key has a value or a list of values.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from labs_helpers.transformer.checkpointing import equal_segments
from labs_helpers.transformer.config import SIZES, TransformerConfig
from labs_helpers.transformer.setups import Setup, walk

SHIPPED = Path(__file__).parent / "configurations"
FIELDS = tuple(field.name for field in dataclasses.fields(Setup))
REQUIRED = ("sizes", "batches", "lengths")
KEYS = (*REQUIRED, "seeds", *FIELDS, "orders")


@dataclass(frozen=True)
class Point:
    """One setting to measure. ValueError names a value that does not exist or fit."""

    size: str  # of config.SIZES
    batch: int  # sequences per step
    length: int  # tokens per sequence
    setup: Setup
    seed: int = 0  # of weights and batch

    def __post_init__(self) -> None:
        if not isinstance(self.size, str) or self.size not in SIZES:
            raise ValueError(f"sizes has {self.size!r}; there are {', '.join(map(repr, SIZES))}")
        for name, value, least in (("batches", self.batch, 1), ("lengths", self.length, 1), ("seeds", self.seed, 0)):
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise ValueError(f"{name} has {value!r}, not an integer of {least} or more")
        if self.batch % self.setup.accumulate:
            raise ValueError(f"accumulate is {self.setup.accumulate}, which does not divide a batch of {self.batch}")
        equal_segments(self.config.layers, self.setup.segments)

    @property
    def config(self) -> TransformerConfig:
        """The size's configuration, with a context that is long enough: GPT-2's sizes end at 1024 tokens."""
        config = SIZES[self.size]
        return dataclasses.replace(config, context=max(config.context, self.length))

    def __str__(self) -> str:
        seed = f" seed {self.seed}" if self.seed else ""
        return f"{self.size} {self.batch} × {self.length}, {self.setup}{seed}"


def points(grid: Mapping[str, Any]) -> list[Point]:
    """Return all combinations of a grid's values, each once, with sizes outermost. ValueError names what is wrong or
    missing."""
    for key in grid:
        if key not in KEYS:
            raise ValueError(f"there is no key {key!r}; there are {', '.join(KEYS)}")
    for key in REQUIRED:
        if key not in grid:
            raise ValueError(f"the key {key!r} is missing")
    values = {key: value if isinstance(value, list) else [value] for key, value in grid.items()}
    for key, listed in values.items():
        if not listed:
            raise ValueError(f"{key} is an empty list")
    fields = [key for key in values if key in FIELDS]
    setups = [
        Setup(**dict(zip(fields, chosen, strict=True))) for chosen in itertools.product(*(values[f] for f in fields))
    ]
    if "orders" in values:
        setups = [setup for start in setups for order in values["orders"] for setup in walk(order, start).values()]
    axes = values["sizes"], values["lengths"], values["batches"], setups, values.get("seeds", [0])
    found = (Point(size, batch, length, setup, seed) for size, length, batch, setup, seed in itertools.product(*axes))
    return list(dict.fromkeys(found))


def read(name: str, options: Mapping[str, Any]) -> list[Point]:
    """Return the points of a YAML file, one of `configurations/` by name or another by path. `options`: keys that
    replace those of every grid. ValueError names file, grid and key; FileNotFoundError for a missing file."""
    import yaml  # imported here, because points do not need it

    path = Path(name) if Path(name).is_file() else SHIPPED / f"{name.removesuffix('.yaml')}.yaml"
    if not path.is_file():
        shipped = ", ".join(sorted(path.name for path in SHIPPED.glob("*.yaml")))
        raise FileNotFoundError(f"no file {name}; shipped are {shipped}")
    try:
        grids = yaml.safe_load(path.read_text())
    except yaml.YAMLError as error:
        raise ValueError(f"{name} is no YAML: {error}") from error
    if not isinstance(grids, list) or not grids or not all(isinstance(grid, dict) for grid in grids):
        raise ValueError(f"{name} is not a list of grids, each beginning with '- '")
    found: list[Point] = []
    for number, grid in enumerate(grids, start=1):
        try:
            found += points(grid | dict(options))
        except ValueError as error:
            raise ValueError(f"{name}, grid {number}: {error}") from error
    return found


def gather(names: Sequence[str], options: Mapping[str, Any], default: Mapping[str, Any]) -> list[Point]:
    """Return the points of all files, or without files those of `default` with `options`; each point once, at its first
    place.

    Raises as `read` does.
    """
    found = [point for name in names for point in read(name, options)]
    return list(dict.fromkeys(found or points({**default, **options})))
