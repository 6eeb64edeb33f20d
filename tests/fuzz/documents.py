"""Mutations of valid JSON documents: a value anywhere becomes an odd one, moves, or disappears."""

import copy
from random import Random
from typing import Any

ODD: tuple[Any, ...] = (
    *(None, True, -1, 0, 2, 10**15, 2**63, 10**20, 10**400, 1e308, float("inf"), float("nan"), 0.5),
    *("", "a", "\0", "\ud800", "../../x", "9999-12-31T23:59:59Z", "0x1p+1023", "0x1p-1074", "-0x1p+0", "x" * 3000),
    *([], {}, [None], [[]], {"a": 1}, [0] * 50),
)


def changed(document: Any, choose: Random) -> Any:
    """Return a copy with one or two changes; each kind of place has the same probability, however often it occurs."""
    document = copy.deepcopy(document)
    for _ in range(choose.choice((1, 1, 2))):
        kinds: dict[tuple[str, ...], list[tuple[Any, Any]]] = {}
        for kind, parent, key in _places(document, ()):
            kinds.setdefault(kind, []).append((parent, key))
        if kinds:
            parent, key = choose.choice(kinds[choose.choice(sorted(kinds))])
            _change(parent, key, choose)
    return document


def _places(value: Any, path: tuple[str, ...]) -> Any:
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, member in members:
        # Positions and names of files count as one kind.
        kind = (*path, str(key) if isinstance(value, dict) and "/" not in str(key) else "")
        yield kind, value, key
        yield from _places(member, kind)


def _change(parent: Any, key: Any, choose: Random) -> None:
    value = parent[key]
    match choose.randrange(8):
        case 0:
            del parent[key]
        case 1 if isinstance(parent, list):
            parent.insert(key, copy.deepcopy(value))
        case 2 if isinstance(parent, dict):
            parent["unknown"] = parent.pop(key)
        case 3 if type(value) in (int, float):
            parent[key] = choose.choice((value + 1, value - 1, -value, value * 1000))
        case _:
            parent[key] = choose.choice(ODD)
