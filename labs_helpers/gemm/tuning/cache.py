"""Store the best configuration of each key in one JSON file that several processes can share."""

from __future__ import annotations

import json
import math
import os
import tempfile
import warnings
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path

from filelock import FileLock

from labs_helpers.gemm.configs import Config

GAIN = 0.01  # a smaller gain is within the noise of two measurements
_FIELDS = {field.name for field in fields(Config)}


class TuningCache:
    """A cache of key → (Config, ms) in a JSON file. Each call reads the file, so processes see each other's entries.

    A damaged file is renamed to '<name>.damaged', with a warning, and the cache starts empty. Each write creates a new
    file and replaces the old one with it, under a lock in a file beside it.
    """

    def __init__(self, path: str | os.PathLike):
        self.path = Path(path)

    def get(self, key: str) -> Config | None:
        """Return the configuration stored under `key`, or None."""
        entry = self.entries().get(key)
        return Config(**entry["config"]) if entry else None

    def put(self, key: str, config: Config, ms: float) -> bool:
        """Store `config` with its time in ms, unless an entry exists that is at most 1% slower. Return whether it did.

        Raises ValueError for a time that is not finite and positive, and TypeError for a configuration that is not a
        Config.
        """
        if not isinstance(config, Config):
            raise TypeError(f"config is {config!r}, not a Config")
        if not (math.isfinite(ms) and ms > 0):
            raise ValueError(f"ms is {ms!r}; a time is finite and positive")
        with self._locked():
            entries = self._read(mend=True)
            if key in entries and not ms < (1 - GAIN) * entries[key]["ms"]:
                return False
            entries[key] = {"config": config.keywords(), "ms": float(ms)}
            self._write(entries)
        return True

    def entries(self) -> dict:
        """Return all entries: key → {'config': {…}, 'ms': …}."""
        try:
            return self._read(mend=False)
        except ValueError:
            with self._locked():  # damaged: read it again under the lock, when no other process is repairing it
                return self._read(mend=True)

    def _read(self, mend: bool) -> dict:
        try:
            text = self.path.read_bytes()
        except FileNotFoundError:
            return {}
        try:
            return _checked(json.loads(text))
        except (ValueError, RecursionError) as error:
            if not mend:
                raise ValueError(str(error)) from error
            aside = _free_name(self.path)
            os.replace(self.path, aside)
            warnings.warn(
                f"{self.path} is damaged ({error}); it is kept as {aside.name}, and the cache begins empty",
                stacklevel=4,
            )
            return {}

    def _write(self, entries: dict) -> None:
        handle, name = tempfile.mkstemp(dir=self.path.parent, prefix=self.path.name + ".", suffix=".new")
        try:
            with os.fdopen(handle, "w") as file:
                json.dump(entries, file, indent=1, sort_keys=True)
                file.flush()
                os.fsync(file.fileno())
            os.replace(name, self.path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise

    @contextmanager
    def _locked(self):
        # The lock is in a file beside the cache, because the cache itself is replaced. It is not in a temporary folder,
        # because nodes that share the cache do not share that.
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(f"{self.path}.lock"):
            yield


def _checked(entries) -> dict:
    """Return `entries` if they form a valid cache, else raise ValueError with the reason."""
    if not isinstance(entries, dict):
        raise ValueError(f"a cache is a JSON object, not {type(entries).__name__}")
    for key, entry in entries.items():
        config, ms = (entry.get("config"), entry.get("ms")) if isinstance(entry, dict) else (None, None)
        sound = (
            isinstance(config, dict)
            and set(config) == _FIELDS
            and all(type(value) is int for value in config.values())
            and type(ms) in (int, float)
            and math.isfinite(ms)
            and ms > 0
        )
        if not sound:
            raise ValueError(f"the entry of {key!r} is not a configuration with its time")
    return entries


def _free_name(path: Path) -> Path:
    names = (path.with_name(f"{path.name}.damaged{number or ''}") for number in range(10**6))
    return next(name for name in names if not name.exists())
