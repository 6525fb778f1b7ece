"""Engines that the tests of a process share."""

from collections.abc import Iterator

import pytest

from tests.data.engines.servers import running_spark


@pytest.fixture(scope="session")
def spark(tmp_path_factory) -> Iterator[object]:
    with running_spark(tmp_path_factory.mktemp("spark")) as session:
        yield session
