"""The device's part of a local release: an answer for each window in, a randomised report out, and a private state.

It needs only NumPy. A device calls `enrol` once, which refuses a design that costs more than the device's owner has
agreed to, and then `report` at the end of every window of the release, also before its person is present and after it
has gone; a simulation or a trusted gateway does this for many people at once.

The device stores what `report` returns before it sends the report, and sends the same report again if sending fails.
The same state and answers give the same report, so a device that stopped before it stored the result may repeat the
step. A device must never send a different report on a window: signs are drawn once for all windows, so two reports that
contradict each other about one question prove that nothing has changed, for any epsilon. So windows are reported in
order, each once. With an old copy of the state a device must repeat the answers that it gave, or it enrols again, and
the losses of both add up.

The state (`People`) is as private as the answers. No branch and no size depends on it.

>>> from privacy.local.candidates import tree
>>> from privacy.local.mutation_space import MutationSpace
>>> from privacy.local.bound import LocalBound
>>> design = tree(MutationSpace(answers=2), LocalBound(at_most=3), windows=52, arity=2, height=1, epsilon=1.0)
>>> person = enrol(design, 1, most_epsilon=1.0)
>>> for window, answer in enumerate((NOT_THERE, 0, 0, 1)):
...     reports, person = report(design, person, window, np.array([answer]))
>>> len(reports.sign), abs(int(reports.sign[0])), int(person.used[0])
(1, 1, 2)
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from privacy.local.chance import Chance, Device, Ints, Keyed, new_key, next_key
from privacy.local.design import SHARES, Design
from privacy.local.document import digest, mark
from privacy.local.signs import turned, words

NOT_THERE = -1
"""The answer of a person who is absent."""

DEVICE = Device()


@dataclass(frozen=True, slots=True, kw_only=True)
class People:
    """State of devices between windows, a row for each device.

    Attributes:
        design: digest of the design in which they are enrolled; they report on no other design.
        window: the next window to report on.
        key: determines the draws of the next report, for all rows together. Rows that are separated need separate keys:
            two parts with one key would draw the same, and one part would reveal the other.
        layer: layer of the tree, int64 [people]; public.
        turn: window in which an answer is reported once, int64 [people]; public.
        patterns: uint64 [people, words], signs drawn beforehand, a bit for each.
        spent: number of used signs, int64 [people].
        counted: the answer after counted changes, int64 [people].
        began: the counted answer at the beginning of the open node, int64 [people].
        used: number of changes that have counted, int64 [people].
        first: window of the first of them, int64 [people].
    """

    design: str
    window: int
    key: bytes
    layer: NDArray[np.uint8]
    turn: Ints
    patterns: NDArray[np.uint64]
    spent: NDArray[np.uint16]
    counted: Ints
    began: Ints
    used: Ints
    first: Ints


@dataclass(frozen=True, slots=True, kw_only=True)
class Reports:
    """Reports of devices at the end of a window, a row for each device that has to report, ordered by person.

    Attributes:
        person: number of the device, public, int64 [reports].
        layer: layer of the node that the report is on, int64 [reports].
        symbol: the question that the sign answers, or the symbol itself, int64 [reports].
        sign: -1 or 1; 1 for symbols; int64 [reports].
        design: the mark of the design (`privacy.local.document.mark`), equal for all rows.
    """

    person: Ints
    layer: NDArray[np.uint8]
    symbol: NDArray[np.uint32]
    sign: NDArray[np.int8]
    design: str


def enrol(
    design: Design, people: int, *, most_epsilon: float, most_delta: float = 0.0, chance: Chance = DEVICE
) -> People:
    """Return the state of devices before the first window, when everybody is absent.

    Guarantee: everything that an enrolled device sends is (epsilon, delta)-locally private, with the design's
    parameters, which are at most `most_epsilon` and `most_delta`.

    Args:
        design: the collector's design.
        people: number of devices.
        most_epsilon: the largest epsilon that the owner of the device has agreed to; not taken from the design.
        most_delta: the largest delta that the owner has agreed to; not taken from the design.
        chance: source of randomness, for tests.

    Raises:
        ValueError: the design costs more.
    """
    refuse_dearer(design, most_epsilon=most_epsilon, most_delta=most_delta)
    shares = np.cumsum([layer.share for layer in design.layers])
    layer = np.searchsorted(shares, chance.below(SHARES, people), side="right").astype(np.uint8)
    turn = chance.below(design.windows if design.reported == "once" else 1, people)
    patterns = np.zeros((people, words(design.most_signs)), dtype=np.uint64)
    for number, each in enumerate(design.layers):
        members = np.flatnonzero(layer == number)
        drawn = each.randomiser.patterns(chance, len(members))
        patterns[members, : drawn.shape[1]] = drawn
    none = np.full(people, design.answers)
    return People(
        design=digest(design),
        window=0,
        key=new_key(),
        layer=layer,
        turn=turn,
        patterns=patterns,
        spent=np.zeros(people, dtype=np.uint16),
        counted=none,
        began=none,
        used=np.zeros(people, dtype=np.int64),
        first=np.zeros(people, dtype=np.int64),
    )


def refuse_dearer(design: Design, *, most_epsilon: float, most_delta: float) -> None:
    """Refuse a design that costs more than the owner has agreed to.

    Args:
        design: the collector's design.
        most_epsilon, most_delta: largest accepted parameters, as for `enrol`.

    Raises:
        ValueError: the design costs more.
    """
    for name, asked, agreed in (("epsilon", design.epsilon, most_epsilon), ("delta", design.delta, most_delta)):
        if not asked <= agreed:
            raise ValueError(f"{name}: the design asks for {asked:g}; the owner agreed to {agreed:g} (most_{name})")


def report(
    design: Design, people: People, window: int, answers: Ints, chance: Chance | None = None
) -> tuple[Reports, People]:
    """Return the reports of a window, and the new state.

    Neighbours: any two sequences of a person's answers. Guarantee: that of the design (privacy.local.design).

    Args:
        design: the design in which the devices are enrolled.
        people: the state after the window before.
        window: number of the window, from 0; each is to be reported on once, in order.
        answers: answers at its end, int64 [people]; -1 for a person who is absent.
        chance: source of randomness, for simulations; otherwise the draws follow from the state, so that a repeated
            call gives the same report.

    Raises:
        ValueError: the design, the window or the answers do not fit the state.
    """
    if not 0 <= window < design.windows:
        raise ValueError(f"window={window} must be one of the {design.windows} of the release")
    if people.design != digest(design):
        raise ValueError("design: the device is enrolled in another design, and reports only on that one")
    if window != people.window:
        raise ValueError(f"window={window}: the next to report on is {people.window}; each once, in order")
    integers = np.issubdtype(answers.dtype, np.integer) and answers.shape == people.counted.shape
    if not integers or ((answers < NOT_THERE) | (answers >= design.answers)).any():
        raise ValueError(f"answers must be integers from -1 to {design.answers - 1}, one for each person")
    now = np.where(answers == NOT_THERE, design.answers, answers.astype(np.int64))
    if chance is None:
        chance = Device(Keyed(people.key))
    people = replace(people, window=window + 1, key=next_key(people.key))
    if design.reported == "once":
        return _reported_once(design, people, window, now, chance), people
    counted, used, first = _counted(design, people, window, now)
    ended, spent, began = [], people.spent.copy(), people.began.copy()
    for number, layer in enumerate(design.layers):
        if (window + 1) % layer.span:
            continue
        members = np.flatnonzero(people.layer == number)
        before, after = began[members], counted[members]
        drawn = 1 - 2 * turned(people.patterns[members], spent[members].astype(np.int64))
        ends = (before, after, drawn)
        question, sign, used_signs = layer.randomiser.reported(ends, design.basis, design.space, chance)
        spent[members] += used_signs
        began[members] = after
        ended.append((members, np.full(len(members), number), question, sign))
    kept = replace(people, spent=spent, counted=counted, began=began, used=used, first=first)
    return _in_order(design, *(np.concatenate(column) for column in zip(*ended, strict=True))), kept


def _counted(design: Design, people: People, window: int, now: Ints) -> tuple[Ints, Ints, Ints]:
    """Return the counted answer, the number of counted changes, and the window of the first one."""
    counts = (now != people.counted) & design.bound.counts(people.used, people.first, window)
    counts &= design.space.allowed(people.counted, now)
    first = np.where(counts & (people.used == 0), window, people.first)
    return np.where(counts, now, people.counted), people.used + counts, first


def _reported_once(design: Design, people: People, window: int, now: Ints, chance: Chance) -> Reports:
    (layer,) = design.layers
    members = np.flatnonzero(people.turn == window)
    answer = now[members]
    drawn = 1 - 2 * turned(people.patterns[members], np.zeros(len(members), dtype=np.int64))
    question, sign = layer.randomiser.reported_once(answer, drawn, design.basis, chance)
    return _in_order(design, members, np.zeros(len(members), dtype=np.int64), question, sign)


def _in_order(design: Design, person: Ints, layer: Ints, symbol: Ints, sign: Ints) -> Reports:
    order = np.argsort(person, kind="stable")
    return Reports(
        person=person[order],
        layer=layer[order].astype(np.uint8),
        symbol=symbol[order].astype(np.uint32),
        sign=sign[order].astype(np.int8),
        design=mark(design),
    )
