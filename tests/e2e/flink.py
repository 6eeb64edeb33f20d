"""What tests on Flink have in common; `conftest.py` starts the cluster, one for all of them."""

import pytest

from templates.flink.local import Cluster
from tests.programs import needs

WITH_JAVA = needs("java", "mvn")
"""Anything else that keeps a cluster from starting fails."""

FLINK_GROUP = pytest.mark.xdist_group("flink")
ON_FLINK = [WITH_JAVA, FLINK_GROUP]


def one_at_a_time(flink: Cluster) -> list[str]:
    """Pipeline options that keep the order of a stream's elements and forward each as soon as it is done."""
    return [*flink.flags, "--parallelism=1", "--max_bundle_size=1"]
