"""Levels of hierarchies whose branches have different depths."""

from transforms.aggregation.hierarchy_key import Level, Node, hierarchy_of, values_of

TOWNS = Node("Bavaria", (Node("Upper", (Node("Munich"), Node("Rosenheim"))), Node("Hof")))
TOP = (TOWNS, Node("Hesse", (Node("Kassel"),)), Node("other"))


def test_each_level_is_a_partition_and_names_its_inner_nodes_alone() -> None:
    found = hierarchy_of(TOP, root="all")

    assert values_of(TOP) == ("Munich", "Rosenheim", "Hof", "Kassel", "other")
    assert found.children == ((2, 1, 1, 1), (2, 1, 1), (3,))
    assert found.levels == (
        Level(names=("Upper",), places=(0,), begins=(0,), ends=(2,)),
        Level(names=("Bavaria", "Hesse"), places=(0, 1), begins=(0, 3), ends=(3, 4)),
        Level(names=("all",), places=(0,), begins=(0,), ends=(5,)),
    )


def test_a_single_top_node_is_the_root() -> None:
    found = hierarchy_of((TOWNS,), root="all")

    assert found.children == ((2, 1), (2,))
    assert [level.names for level in found.levels] == [("Upper",), ("Bavaria",)]
