"""A design as JSON and back, which devices and the collector go on with for ever; and its digest.

Each report carries the first digits of the digest, so that the collector can leave out reports of other designs. What a
device keeps carries all of it, so that the device goes on with no design but the one that it has accepted.
"""

import hashlib
import json
from functools import lru_cache

from privacy.exact import Json, Members
from privacy.local.basis import Basis, Kind
from privacy.local.bound import LocalBound
from privacy.local.design import Design, Layer, Reported
from privacy.local.mutation_space import MutationSpace
from privacy.local.signs import Signs
from privacy.local.symbols import Symbols

VERSION = 1

_REPORTED: tuple[Reported, ...] = ("changes", "once")
_KINDS: tuple[Kind, ...] = ("bins", "hadamard")
MARK = 16
"""Digits of the digest that a report carries."""


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
        "epsilon": float(design.epsilon).hex(),
        "delta": abs(float(design.delta)).hex(),  # designs that are equal have one digest: 0, not -0
        "survey": design.survey,
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
    with bound.naming():
        limit = LocalBound(at_most=bound.optional_count("at_most"), within=bound.optional_count("within"))
    bound.end()
    with members.naming():
        design = Design(
            space=MutationSpace(answers=answers, transitions=transitions),
            windows=members.positive_count("windows"),
            bound=limit,
            reported=members.word("reported", _REPORTED),
            basis=Basis(kind=members.word("questions", _KINDS), answers=answers),
            layers=tuple(_layer_from_json(layer) for layer in members.each("layers")),
            epsilon=members.number("epsilon"),
            delta=members.number("delta"),
            survey=members.text("survey"),
        )
    members.end()
    return design


@lru_cache(maxsize=64)
def digest(design: Design) -> str:
    """SHA-256 of the design's JSON, in hexadecimal."""
    text = json.dumps(design_to_json(design), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def mark(design: Design) -> str:
    """The first digits of the digest, which reports carry."""
    return digest(design)[:MARK]


def _layer_to_json(layer: Layer) -> Json:
    kind, each = ("signs", layer.randomiser) if isinstance(layer.randomiser, Signs) else ("symbols", layer.randomiser)
    numbers = {name: getattr(each, name) for name in each.__slots__}
    return {"span": layer.span, "share": layer.share, kind: numbers}


def _layer_from_json(members: Members) -> Layer:
    randomiser: Signs | Symbols
    signed = members.has("signs")
    of = members.of("signs" if signed else "symbols")
    with of.naming():
        if signed:
            randomiser = Signs(most=of.count("most"), threshold=of.count("threshold"), parts=of.count("parts"))
        else:
            randomiser = Symbols(count=of.count("count"), parts=of.count("parts"))
    of.end()
    layer = Layer(span=members.count("span"), share=members.count("share"), randomiser=randomiser)
    members.end()
    return layer
