"""Names of the files of each chunk; they do not depend on the data."""

from transforms.aggregation.node_sums import Aggregation, NodeKey


def noise_file(key: NodeKey) -> str:
    """Return the file name of a chunk's state."""
    _, number, family, chunk = key
    return f"release-{number}-{family}-{chunk:05d}.parquet"


def has_nodes(aggregation: Aggregation, key: NodeKey) -> bool:
    """Return whether nodes of a chunk are published.

    They are not for adaptive queries, whose samples are the estimates, nor if keys are found, whose earlier nodes stay
    private.
    """
    query = aggregation.queries[key[1]]
    return query.adaptive is None and not query.discovers


def part_names(aggregation: Aggregation, key: NodeKey) -> list[str]:
    """Return the names of a chunk's published tables, one for each block."""
    _, number, family, chunk = key
    blocks = len(aggregation.blocks(number))
    return [f"{aggregation.queries[number].name}-{family}-{chunk * blocks + block:05d}" for block in range(blocks)]
