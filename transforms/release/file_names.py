"""Which files there are of each chunk, whatever the data."""

from transforms.aggregation.node_sums import Aggregation, NodeKey


def noise_file(key: NodeKey) -> str:
    """What the state of a chunk is called."""
    _, number, family, chunk = key
    return f"release-{number}-{family}-{chunk:05d}.parquet"


def has_nodes(aggregation: Aggregation, key: NodeKey) -> bool:
    """Whether nodes of a chunk are published; where the data decide when, samples are estimates and there are none."""
    return aggregation.queries[key[1]].adaptive is None


def part_names(aggregation: Aggregation, key: NodeKey) -> list[str]:
    """What the published tables of a chunk are called, one for each block."""
    _, number, family, chunk = key
    blocks = len(aggregation.blocks(number))
    return [f"{aggregation.queries[number].name}-{family}-{chunk * blocks + block:05d}" for block in range(blocks)]
