"""Candidates of disjoint windows and trees: all shapes compared without refinement, then the best ones refined."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from privacy.strategies.candidates import Candidate, Needs, Offer, whole
from privacy.strategies.choice import REFINES, Choice
from privacy.strategies.tree.tree import Tree
from privacy.ties import cheapest_first

PROMISING = 6
"""Number of shapes of trees whose refinements are computed."""


def for_events(choice: Choice, windows: int | None) -> Tree:
    """Return the strategy for numbers of single windows: a layer of leaves is best, unless the spec names a tree."""
    tree = Tree(branching=2, height=1, refine="none", windows=windows, initial_level=False)
    if choice.name == "tree" and choice.branching is not None and choice.height is not None:
        return replace(tree, branching=choice.branching, height=choice.height)
    return tree


def _disjoint(asked: Needs) -> Iterator[Candidate]:
    horizon = asked.horizon(asked.leaf)
    yield whole(asked, Tree(branching=2, height=1, refine="none", windows=horizon, initial_level=asked.initial_level))


def _trees(asked: Needs) -> Iterator[Candidate]:
    choice, horizon, leaves = asked.choice, asked.horizon(asked.leaf), asked.nominal // asked.leaf
    shapes = [
        Tree(branching=c, height=h, refine="none", windows=horizon, initial_level=asked.initial_level)
        for c in ([choice.branching] if choice.branching is not None else _branchings(leaves))
        for h in ([choice.height] if choice.height is not None else _heights(c, leaves))
        if c ** (h - 1) <= leaves or asked.windows is None
    ]
    if choice.height is None and choice.branching is None:
        shapes = _promising(asked, shapes)
    for refine in REFINES if choice.refine is None else (choice.refine,):
        for shape in shapes:
            yield whole(asked, replace(shape, refine=refine))


def _promising(asked: Needs, shapes: Sequence[Tree]) -> list[Tree]:
    """Return the shapes with the least error, by the plain cover and by subtraction; refining costs more time."""
    kept: dict[Tree, None] = {}
    for refine in ("none", "subtraction"):
        errors = {shape: asked.error(whole(asked, replace(shape, refine=refine))) for shape in shapes}
        kept.update(dict.fromkeys(cheapest_first(shapes, errors.__getitem__)[:PROMISING]))
    return list(kept)


def _branchings(leaves: int) -> list[int]:
    """Return 2, 3, 4, ..., then steps of a tenth, up to the number of leaves."""
    values, c = [], 2
    while c <= min(leaves, 1024):
        values.append(c)
        c = max(c + 1, int(c * 1.1))
    return values


def _heights(branching: int, leaves: int) -> list[int]:
    heights: list[int] = []
    size = branching
    while size <= leaves:
        heights.append(len(heights) + 2)
        size *= branching
    return heights


DISJOINT = Offer(sparse=Tree.sparse, candidates=_disjoint, finds_keys=True)
TREE = Offer(sparse=Tree.sparse, candidates=_trees, finds_keys=True)
