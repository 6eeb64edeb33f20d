"""State of a device between windows, as JSON and back. It is as private as the answers."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from privacy.json_values import Json
from privacy.local.chance import KEY
from privacy.local.client import People
from privacy.local.design import Design
from privacy.local.document import CODEC, VERSION, digest
from privacy.local.signs import WORD, words

_NUMBERS: dict[str, type[np.integer[Any]]] = {
    "layer": np.uint8,
    "turn": np.int64,
    "spent": np.uint16,
    "counted": np.int64,
    "began": np.int64,
    "used": np.int64,
    "first": np.int64,
}
"""Members of `People` that have a number for each device, and their types."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kept:
    """The state of one device; members as in `People`, with all patterns in one number."""

    design: str
    window: int
    key: bytes
    patterns: int
    layer: int
    turn: int
    spent: int
    counted: int
    began: int
    used: int
    first: int


def device_to_json(device: People) -> Json:
    """Return the JSON object of one device. It contains the person's answer."""
    if len(device.layer) != 1:
        raise ValueError("this is for the device of one person")
    kept = _Kept(
        design=device.design,
        window=device.window,
        key=device.key,
        patterns=sum(int(word) << (WORD * place) for place, word in enumerate(device.patterns[0])),
        **{name: int(getattr(device, name)[0]) for name in _NUMBERS},
    )
    return CODEC.dump(kept, version=VERSION)


def device_from_json(document: object, design: Design) -> People:
    """Return a device from its JSON object.

    Raises:
        ValueError: a member is invalid, which the message names, or no device of the design has this state.

    >>> from privacy.local.bound import LocalBound
    >>> from privacy.local.client import enrol, report
    >>> from privacy.local.mutation_space import MutationSpace
    >>> from privacy.local.candidates import tree
    >>> design = tree(MutationSpace(answers=2), LocalBound(at_most=2), windows=4, arity=2, height=2, epsilon=1.0)
    >>> _, device = report(design, enrol(design, 1, most_epsilon=1.0), 0, np.array([1]))
    >>> again = device_from_json(device_to_json(device), design)
    >>> device_to_json(again) == device_to_json(device), again.counted.tolist(), again.window
    (True, [1], 1)
    """
    kept: _Kept = CODEC.load(_Kept, document, version=VERSION)
    if kept.design != digest(design):
        raise ValueError("design: expected the digest of this design; the state is of a device of another design")
    if len(kept.key) != KEY:
        raise ValueError(f"key: expected {KEY} bytes in hexadecimal")
    _refuse_above("window", kept.window, design.windows)
    _refuse_above("layer", kept.layer, len(design.layers) - 1)
    for name, most in _largest(design, kept).items():
        _refuse_above(name, getattr(kept, name), most)
    if kept.spent > _most_spent(design, kept):
        raise ValueError("spent: expected a smaller integer; no device of this design has used that many signs")
    each = [kept.patterns >> (WORD * place) & ((1 << WORD) - 1) for place in range(words(design.most_signs))]
    return People(
        design=kept.design,
        window=kept.window,
        key=kept.key,
        patterns=np.array([each], dtype=np.uint64),
        **{name: np.array([getattr(kept, name)], dtype=kind) for name, kind in _NUMBERS.items()},
    )


def _largest(design: Design, kept: _Kept) -> dict[str, int]:
    """Return the largest value of each member in the state of a device of the design, in this window and layer."""
    randomiser = design.layers[kept.layer].randomiser
    signs = randomiser.most
    once = design.reported == "once"
    limit = design.bound.at_most if design.bound.within is None else design.bound.within + 1
    return {
        "turn": design.windows - 1 if once else 0,
        "counted": design.answers,
        "began": design.answers,
        "used": 0 if once else min(kept.window, limit or 0),
        "first": max(0, kept.window - 1),
        "spent": signs,
        "patterns": (1 << signs) - 1,
    }


def _refuse_above(name: str, value: int, largest: int) -> None:
    if not 0 <= value <= largest:
        raise ValueError(f"{name}: expected an integer from 0 to {largest}")


def _most_spent(design: Design, kept: _Kept) -> int:
    """Return the largest number of signs that a device in this state can have used.

    Each sign was used on a closed node in which a change counted; so enough signs remain for all changes that may still
    count.
    """
    span, within = design.layers[kept.layer].span, design.bound.within
    last = kept.window if within is None else min(kept.window, kept.first + within + 1)
    nodes = min(kept.window // span, -(-last // span)) - kept.first // span
    return max(0, min(nodes, kept.used - (kept.counted != kept.began)))
