"""Start four ranks once for this folder's files."""

from pathlib import Path

from tests.tensor_parallel.conftest import fixtures_of

of_every_file, results = fixtures_of(Path(__file__).parent)
