"""A server that several tests share."""

import pytest

from tests.serving.served import served


@pytest.fixture(scope="module")
def server():
    with served() as made:
        yield made
