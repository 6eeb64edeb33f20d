"""Fixtures that start slowly, started once for all modules."""

from collections.abc import Iterator

import pytest

from templates.flink.local import Cluster, cluster


@pytest.fixture(scope="session")
def flink(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with cluster(tmp_path_factory.mktemp("flink") / "cluster") as started:
        yield started
