"""As JSON and back: a design, which devices and the collector go on with for ever, and what a device keeps, private."""

from typing import Any

import numpy as np

from privacy.exact import Json, Members
from privacy.local.basis import Basis, Kind
from privacy.local.bound import LocalBound
from privacy.local.chance import KEY
from privacy.local.client import People
from privacy.local.design import Design, Layer, Reported
from privacy.local.mutation_space import MutationSpace
from privacy.local.signs import WORD, Signs, words
from privacy.local.symbols import Symbols

VERSION = 1

_REPORTED: tuple[Reported, ...] = ("changes", "once")
_KINDS: tuple[Kind, ...] = ("bins", "hadamard")
_KEPT: dict[str, type[np.integer[Any]]] = {
    "layer": np.uint8,
    "turn": np.int64,
    "spent": np.uint16,
    "counted": np.int64,
    "began": np.int64,
    "used": np.int64,
    "first": np.int64,
}


def design_to_json(design: Design) -> Json:
    return {
        "version": VERSION,
        "answers": design.answers,
        "transitions": None if design.space.transitions is None else list(design.space.transitions),
        "windows": design.windows,
        "bound": {"at_most": design.bound.at_most, "within": design.bound.within},
        "reported": design.reported,
        "questions": design.basis.kind,
        "layers": [_layer_to_json(layer) for layer in design.layers],
        "epsilon": design.epsilon.hex(),
        "delta": design.delta.hex(),
    }


def design_from_json(members: Members) -> Design:
    """What `design_to_json` was given.

    Raises:
        ValueError: it names the place. Randomisers that do not cover the privacy parameters are refused, too.

    >>> from privacy.local.plan import tree
    >>> design = tree(MutationSpace(answers=2), LocalBound(at_most=1), windows=4, arity=2, height=2, epsilon=1.0)
    >>> design_from_json(Members(design_to_json(design))) == design
    True
    """
    if members.count("version") != VERSION:
        raise ValueError("version: a later version of the program has written it; use that one")
    answers = members.positive_count("answers")
    transitions = None if members.is_none("transitions") else members.counts("transitions")
    bound = members.of("bound")
    with members.naming():
        design = Design(
            space=MutationSpace(answers=answers, transitions=transitions),
            windows=members.positive_count("windows"),
            bound=LocalBound(at_most=bound.optional_count("at_most"), within=bound.optional_count("within")),
            reported=members.word("reported", _REPORTED),
            basis=Basis(kind=members.word("questions", _KINDS), answers=answers),
            layers=tuple(_layer_from_json(layer) for layer in members.each("layers")),
            epsilon=members.number("epsilon"),
            delta=members.number("delta"),
        )
    bound.end()
    members.end()
    return design


def device_to_json(device: People) -> Json:
    """What one device keeps from window to window. It has the person's answer in it."""
    if len(device.layer) != 1:
        raise ValueError("this is for the device of one person")
    numbers = {name: int(getattr(device, name)[0]) for name in _KEPT}
    patterns = sum(int(word) << (WORD * place) for place, word in enumerate(device.patterns[0]))
    return {"version": VERSION, "window": device.window, "key": device.key.hex(), "patterns": patterns, **numbers}


def device_from_json(members: Members, design: Design) -> People:
    """What `device_to_json` was given.

    Raises:
        ValueError: it names the place; or no device of the design keeps this.

    >>> from privacy.local.client import enrol, report
    >>> from privacy.local.plan import tree
    >>> design = tree(MutationSpace(answers=2), LocalBound(at_most=2), windows=4, arity=2, height=2, epsilon=1.0)
    >>> _, device = report(design, enrol(design, 1), 0, np.array([1]))
    >>> again = device_from_json(Members(device_to_json(device)), design)
    >>> device_to_json(again) == device_to_json(device), again.counted.tolist(), again.window
    (True, [1], 1)
    """
    if members.count("version") != VERSION:
        raise ValueError("version: a later version of the program has written it; use that one")
    window, key = members.count("window"), bytes.fromhex(members.text("key"))
    kept = {name: np.array([members.count(name)]).astype(kind) for name, kind in _KEPT.items()}
    patterns = members.count("patterns")
    members.end()
    places = words(design.most_signs)
    if not (
        0 <= patterns < 1 << (WORD * places)
        and 0 <= window <= design.windows
        and len(key) == KEY
        and kept["layer"][0] < len(design.layers)
        and all(0 <= kept[name][0] <= design.answers for name in ("counted", "began"))
    ):
        raise ValueError("this is of a device of another design")
    each = [patterns >> (WORD * place) & ((1 << WORD) - 1) for place in range(places)]
    return People(window=window, key=key, patterns=np.array([each], dtype=np.uint64), **kept)


def _layer_to_json(layer: Layer) -> Json:
    kind, each = ("signs", layer.randomiser) if isinstance(layer.randomiser, Signs) else ("symbols", layer.randomiser)
    numbers = {name: getattr(each, name) for name in each.__slots__}
    return {"span": layer.span, "share": layer.share, kind: numbers}


def _layer_from_json(members: Members) -> Layer:
    randomiser: Signs | Symbols
    if members.has("signs"):
        of = members.of("signs")
        randomiser = Signs(most=of.count("most"), threshold=of.count("threshold"), parts=of.count("parts"))
    else:
        of = members.of("symbols")
        randomiser = Symbols(count=of.count("count"), parts=of.count("parts"))
    of.end()
    layer = Layer(span=members.count("span"), share=members.count("share"), randomiser=randomiser)
    members.end()
    return layer
