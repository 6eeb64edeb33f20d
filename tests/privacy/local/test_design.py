"""Documents of designs that somebody has made to promise more privacy than they have, or that make no sense."""

import json
import re
from functools import reduce
from operator import getitem
from typing import Any

import pytest

from privacy.local.bound import LocalBound
from privacy.local.candidates import Method, candidates, tree
from privacy.local.document import design_from_json, design_to_json
from privacy.local.mutation_space import MutationSpace, declared

SPACE, BOUND = MutationSpace(answers=2), LocalBound(at_most=2)
LAYERS, FIRST, SECOND = ("layers",), ("layers", 0, "randomiser"), ("layers", 1, "randomiser")
SIGNS, SYMBOLS = {"kind": "signs", "most": 2, "threshold": 1, "parts": 2**61}, {"kind": "symbols", "count": 7}
WHOLE = 2**62


def document(method: Method) -> Any:
    """Return the document of a design with two layers, or with one if answers are reported once."""
    if method == "once":
        found = candidates(SPACE, BOUND, windows=4, epsilon=1.0)
        return design_to_json(next(one.design for one in found if one.method == "once"))
    return design_to_json(tree(SPACE, BOUND, windows=4, arity=2, height=2, epsilon=1.0, method=method))


HOSTILE: list[tuple[Method, tuple[str | int, ...], Any, str]] = [
    ("signs", ("windows",), 0, "windows: expected at least"),
    ("signs", ("windows",), 10_000_001, "windows: expected at most"),
    ("signs", ("epsilon",), (0.0).hex(), "epsilon: expected a number above 0"),
    ("signs", ("epsilon",), (51.0).hex(), "epsilon: expected at most 50, not 51"),
    ("signs", ("delta",), (-0.5).hex(), "delta: expected at least 0, not -0.5"),
    ("signs", ("delta",), (1.0).hex(), "delta: expected a number below 1, not 1"),
    ("signs", ("basis", "answers"), 3, "questions: for 3 answers"),
    ("signs", ("basis", "answers"), 65_536, "basis: answers: expected at most"),
    ("signs", ("space", "answers"), 0, "space: answers: expected at least"),
    ("signs", ("space", "transitions"), [1, 1], "space: transitions: expected ascending pairs"),
    ("signs", ("bound", "within"), 1, "bound: expected one of at_most: 4 and within: 14d"),
    ("signs", ("bound",), {}, "bound: expected one of at_most: 4 and within: 14d"),
    ("signs", ("bound", "at_most"), 0, "bound: at_most: expected at least"),
    ("signs", ("bound",), {"within": -1}, "bound: within: expected at least"),
    ("signs", LAYERS, [], "layers: spans must begin with 1"),
    ("signs", ("layers", 0, "span"), 2, "layers: spans must begin with 1"),
    ("signs", ("layers", 1, "span"), 1, "layers: spans must begin with 1"),
    ("signs", ("layers", 1, "span"), 8, "layers: spans must begin with 1"),
    ("signs", ("layers", 1, "share"), 32_766, "layers: shares must be positive and add up"),
    ("signs", ("layers", 0, "share"), 0, "layers: shares must be positive and add up"),
    ("signs", SECOND, SYMBOLS | {"parts": 1}, "layers: all must have signs, or all symbols"),
    ("signs", ("reported",), "once", "layers: an answer that is reported once has one layer"),
    # More signs than drawn, or odds above e^epsilon.
    ("signs", (*FIRST, "most"), 3, "layers[0]: its randomiser does not cover"),
    ("signs", (*SECOND, "parts"), 2192242823720348389 * 11 // 10, "layers[1]: its randomiser does not cover"),
    ("signs", (*FIRST, "most"), 1_025, "layers[0].randomiser: most: expected at most"),
    ("signs", (*FIRST, "threshold"), 0, "layers[0].randomiser: threshold: expected at least"),
    ("signs", (*FIRST, "threshold"), 3, "layers[0].randomiser: threshold: expected at most"),
    ("signs", (*FIRST, "parts"), 0, "layers[0].randomiser: parts: expected at least"),
    ("signs", (*FIRST, "parts"), WHOLE, "layers[0].randomiser: parts: expected at most"),
    ("signs", (*FIRST, "parts"), 1, "layers[0].randomiser: the patterns with fewer signs turned must be the likely"),
    ("mutations", (*FIRST, "count"), 6, "layers[0]: its randomiser does not cover"),
    ("mutations", (*SECOND, "parts"), 391137120580468421 + 1, "layers[1]: its randomiser does not cover"),
    ("mutations", (*FIRST, "count"), 1, "layers[0].randomiser: count: expected at least 2, not 1"),
    ("mutations", (*FIRST, "parts"), WHOLE, "layers[0].randomiser: parts: expected at most"),
    ("once", (*FIRST, "parts"), 1679462264468081094 + 1, "layers[0]: its randomiser does not cover"),
    ("once", (*FIRST, "count"), 7, "layers[0]: its randomiser does not cover"),
    ("once", ("reported",), "changes", "layers[0]: its randomiser does not cover"),
]
"""A member with another value, and the beginning of the message."""


@pytest.mark.slow
@pytest.mark.parametrize(("method", "path", "value", "told"), HOSTILE)
def test_a_design_that_does_not_keep_its_promise_is_refused_with_the_member(
    method: Method, path: tuple[str | int, ...], value: Any, told: str
) -> None:
    wrong = json.loads(json.dumps(document(method)))
    assert design_to_json(design_from_json(wrong)) == wrong
    *outer, last = path
    place: Any = reduce(getitem, outer, wrong)  # type: ignore[arg-type]
    place[last] = value

    with pytest.raises(ValueError, match=rf"^{re.escape(told)}"):
        design_from_json(wrong)


def test_symbols_of_declared_changes_are_refused_on_longer_nodes() -> None:
    """Declared changes of windows do not add up to declared changes of longer nodes."""
    space = declared(2, [(2, 0), (0, 1)])
    wrong = design_to_json(tree(space, BOUND, windows=4, arity=2, height=1, epsilon=1.0, method="mutations"))
    layer = wrong["layers"][0]
    wrong["layers"] = [layer | {"share": 1 << 15}, layer | {"share": 1 << 15, "span": 2}]

    with pytest.raises(ValueError, match=r"^layers\[1\]: its randomiser does not cover"):
        design_from_json(wrong)


@pytest.mark.parametrize(
    ("spans", "shares", "told"),
    [
        ((2, 4), (1 << 15, 1 << 15), "layers: spans must begin with 1"),
        ((1, 2, 3), (1 << 15, 1 << 14, 1 << 14), "layers: spans must begin with 1"),
        ((1, 2), (0, 1 << 16), "layers: shares must be positive"),
        ((1, 2), (1 << 17, -(1 << 16)), "layers: shares must be positive"),
    ],
)
def test_layers_that_are_no_tree_are_refused(spans: tuple[int, ...], shares: tuple[int, ...], told: str) -> None:
    wrong = document("signs")
    layer = wrong["layers"][0]
    wrong["layers"] = [layer | {"span": span, "share": share} for span, share in zip(spans, shares, strict=True)]

    with pytest.raises(ValueError, match=f"^{told}"):
        design_from_json(wrong)
