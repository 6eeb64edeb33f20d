"""Mean variances of many cells, computed from few numbers."""

from privacy.cells.averages import averages


def test_means_of_a_million_cells_follow_from_few_numbers():
    sizes = tuple(16**layer for layer in range(5))
    found = averages(1_000_000, sizes, (1,) * 5)
    assert 0.9 < found["cells"] < 1.0
    assert found["prefixes"] < found["ranges"] < 100
