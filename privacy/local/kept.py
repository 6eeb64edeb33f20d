"""What a device keeps from window to window, as JSON and back. It is as private as the answers."""

from typing import Any

import numpy as np

from privacy.exact import Json, Members
from privacy.local.chance import KEY
from privacy.local.client import People
from privacy.local.design import Design
from privacy.local.document import VERSION, digest
from privacy.local.signs import WORD, Signs, words

_KEPT: dict[str, type[np.integer[Any]]] = {
    "layer": np.uint8,
    "turn": np.int64,
    "spent": np.uint16,
    "counted": np.int64,
    "began": np.int64,
    "used": np.int64,
    "first": np.int64,
}


def device_to_json(device: People) -> Json:
    """The JSON object of one device. It has the person's answer in it."""
    if len(device.layer) != 1:
        raise ValueError("this is for the device of one person")
    numbers = {name: int(getattr(device, name)[0]) for name in _KEPT}
    patterns = sum(int(word) << (WORD * place) for place, word in enumerate(device.patterns[0]))
    state = {"version": VERSION, "design": device.design, "window": device.window, "key": device.key.hex()}
    return {**state, "patterns": patterns, **numbers}


def device_from_json(members: Members, design: Design) -> People:
    """What `device_to_json` was given.

    Raises:
        ValueError: it names the member; or no device of the design keeps this.

    >>> from privacy.local.bound import LocalBound
    >>> from privacy.local.client import enrol, report
    >>> from privacy.local.mutation_space import MutationSpace
    >>> from privacy.local.plan import tree
    >>> design = tree(MutationSpace(answers=2), LocalBound(at_most=2), windows=4, arity=2, height=2, epsilon=1.0)
    >>> _, device = report(design, enrol(design, 1, most_epsilon=1.0), 0, np.array([1]))
    >>> again = device_from_json(Members(device_to_json(device)), design)
    >>> device_to_json(again) == device_to_json(device), again.counted.tolist(), again.window
    (True, [1], 1)
    """
    if members.count("version") != VERSION:
        raise ValueError("version: a later version of the program has written it; use that one")
    if members.text("design") != digest(design):
        raise members.wrong("design", "the digest of this design; the state is of a device of another design")
    key = members.text("key")
    if len(key) != 2 * KEY or set(key) - set("0123456789abcdef"):
        raise members.wrong("key", f"{KEY} bytes in hexadecimal")
    window = _up_to(members, "window", design.windows)
    layer = _up_to(members, "layer", len(design.layers) - 1)
    randomiser = design.layers[layer].randomiser
    signs = randomiser.most if isinstance(randomiser, Signs) else 0
    once = design.reported == "once"
    limit = design.bound.at_most if design.bound.within is None else design.bound.within + 1
    most = {
        "turn": design.windows - 1 if once else 0,
        "counted": design.answers,
        "began": design.answers,
        "used": 0 if once else min(window, limit or 0),
        "first": max(0, window - 1),
        "spent": signs,
        "patterns": (1 << signs) - 1,
    }
    kept = {"layer": layer} | {name: _up_to(members, name, largest) for name, largest in most.items()}
    members.end()
    if kept["spent"] > _most_spent(design, window, kept):
        raise members.wrong("spent", "a smaller integer; no device of this design has used so many signs")
    patterns = kept.pop("patterns")
    each = [patterns >> (WORD * place) & ((1 << WORD) - 1) for place in range(words(design.most_signs))]
    return People(
        design=digest(design),
        window=window,
        key=bytes.fromhex(key),
        patterns=np.array([each], dtype=np.uint64),
        **{name: np.array([kept[name]], dtype=kind) for name, kind in _KEPT.items()},
    )


def _up_to(members: Members, name: str, largest: int) -> int:
    value = members.count(name)
    if not 0 <= value <= largest:
        raise members.wrong(name, f"an integer from 0 to {largest}")
    return value


def _most_spent(design: Design, window: int, kept: dict[str, int]) -> int:
    """Largest number of signs that a device in this state can have used.

    Each was used on a node that has closed and in which a change counted; so what is left is enough for all changes
    that may still count.
    """
    span, within = design.layers[kept["layer"]].span, design.bound.within
    last = window if within is None else min(window, kept["first"] + within + 1)
    nodes = min(window // span, -(-last // span)) - kept["first"] // span
    return max(0, min(nodes, kept["used"] - (kept["counted"] != kept["began"])))
