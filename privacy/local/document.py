"""A design as JSON and back: what devices and the collector are given, and what a release goes on with for ever."""

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
