"""`slackwater audit` of a survey with local reports: one layer, which attacks what devices send.

Real devices enrol and report. A coin gives each of them one of two persons: one who changes in every window, more often
than counts, or one who is never there. A reader who knows both guesses the coin from all reports of a device, by their
exact likelihoods. Draws are compared with the probabilities of the design, a repeated step must give the same report,
and the times of reports must not depend on answers.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from random import Random
from time import process_time
from typing import cast

import numpy as np

from pipelines.audit.audited import Audited
from pipelines.audit.findings import LayerResult
from pipelines.audit.membership import CLAIM_FAILURE, FAILURE
from pipelines.local.plan import design_of
from pipelines.local.promise import statement
from pipelines.local.spec import load_local
from privacy.evidence.betting import epsilon_of_tally, tally
from privacy.local.chance import Flags, Ints
from privacy.local.client import NOT_THERE, People, Reports, enrol, report
from privacy.local.design import Design, Layer
from privacy.local.signs import Signs
from privacy.local.symbols import Symbols
from privacy.strategies.base import Floats

DEVICES = {"seeded": 40_000, "alone": 40_000, "claims": 400_000, "quick": 40_000, "usual": 200_000, "full": 1_000_000}
"""Devices by the effort of the audit."""

FEW = 2000
"""Devices whose reports are compared one by one."""

FALSE_ALARM = 1e-6
MOST_WINDOWS = 64

NodeEnds = tuple[int, int]
"""Counted answers at the beginning and at the end of a node."""


@dataclass(frozen=True, slots=True)
class SentReports:
    """Reports of some windows, of devices that a coin gave one of two persons.

    Attributes:
        people: State before the first window.
        busy: Whether a device is the busy person's.
        answers: Answers of the busy person; the other one is never there.
        reports: Reports of each window.
    """

    people: People
    busy: Flags
    answers: Ints
    reports: list[Reports]

    @classmethod
    def of(cls, design: Design, answers: Ints, devices: int) -> "SentReports":
        """Let new devices report."""
        people = enrol(design, devices, most_epsilon=design.epsilon, most_delta=design.delta)
        busy = np.random.default_rng().random(devices) < 0.5  # coins of the test, not noise
        found = cls(people, busy, answers, [])
        for window, answer in enumerate(answers.tolist()):
            reports, people = report(design, people, window, np.where(busy, answer, NOT_THERE))
            found.reports.append(reports)
        return found


def audit(path: str, effort: str) -> Audited:
    """Attack the reports of a survey's design.

    Args:
        path: Path of the spec.
        effort: Key of `DEVICES`.

    Raises:
        SpecError: The spec is wrong.
    """
    began, spec = process_time(), load_local(path)
    design = design_of(spec)
    return Audited(
        subject=f"survey {spec.release}",
        claim=statement(design),
        epsilon=design.epsilon,
        delta=design.delta,
        layers=(check_devices(design, Random(), devices=DEVICES[effort]),),
        seconds=process_time() - began,
    )


def check_devices(design: Design, choose: Random, *, devices: int) -> LayerResult:
    """Attack the reports of a design.

    Args:
        design: The design.
        choose: Source of random choices.
        devices: Number of devices.
    """
    answers = np.array(
        [
            choose.randrange(design.answers) if n % 2 == 0 else NOT_THERE
            for n in range(min(design.windows, MOST_WINDOWS))
        ]
    )
    sent = SentReports.of(design, answers, devices)
    faults = [*_repeated(design, answers), *_times(design, answers), *_draws(design, sent)]
    scores = _ratios(design, sent) * np.where(sent.busy, 1, -1)
    told = tally(scores, design.epsilon)
    correct, wrong = told.sum(axis=1).tolist()
    bound, strict = (epsilon_of_tally(told, design.epsilon, failure) for failure in (FAILURE, CLAIM_FAILURE))
    if design.delta == 0 and strict > design.epsilon:
        faults.append(f"epsilon is at least {strict:.3f}, and the claim is {design.epsilon:.3f}")
    return LayerResult(
        name="devices",
        question="Do the reports of a device reveal more than the design states?",
        tried={"devices": devices, "windows": len(answers), "guesses": correct + wrong, "correct guesses": correct},
        found=(
            f"epsilon is at least {bound:.3f} with confidence 99.9 %; the claim is {design.epsilon:.3f}",
            f"sees a probability of a draw that is wrong by {2 * _allowed(devices // 2):.3f} or more",
        ),
        faults=tuple(faults),
        untested=("A delta: an event of probability 1e-9 does not occur.",) if design.delta else (),
        measures={"lower": bound, "claim": design.epsilon},
    )


def _repeated(design: Design, answers: Ints) -> Iterator[str]:
    """Yield whether a device that repeats a step sends another report."""
    people = enrol(design, FEW, most_epsilon=design.epsilon, most_delta=design.delta)
    for window, answer in enumerate(answers[:8].tolist()):
        (one, after), (two, _) = (report(design, people, window, np.full(FEW, answer)) for _ in range(2))
        if not all(np.array_equal(getattr(one, name), getattr(two, name)) for name in ("person", "symbol", "sign")):
            yield "a device that repeats a step samples its report again"
            return
        people = after


def _times(design: Design, answers: Ints) -> Iterator[str]:
    """Yield whether the times of reports depend on answers: the same devices have both persons' answers."""
    left = right = enrol(design, FEW, most_epsilon=design.epsilon, most_delta=design.delta)
    for window, answer in enumerate(answers.tolist()):
        mine, left = report(design, left, window, np.full(FEW, answer))
        theirs, right = report(design, right, window, np.full(FEW, NOT_THERE))
        if not (np.array_equal(mine.person, theirs.person) and np.array_equal(mine.layer, theirs.layer)):
            yield "whether a device reports depends on its answers"
            return


def _draws(design: Design, sent: SentReports) -> Iterator[str]:
    """Yield draws whose frequencies are not those of the design."""
    for number, layer in enumerate(design.layers):
        signs, symbols = _kinds(layer)
        members = sent.people.layer == number
        idle = members & ~sent.busy
        told = [(one.symbol, one.sign) for part in sent.reports for one in [_of(part, idle)]]
        symbol, sign = (np.concatenate(part).astype(np.int64) for part in zip(*told, strict=True))
        if signs is not None:
            turned = np.bitwise_count(sent.people.patterns[members]).sum(axis=1).astype(np.int64)
            exact = [float(signs.probability(i) * math.comb(signs.most, i)) for i in range(signs.most + 1)]
            yield from _frequencies("signs drawn beforehand", turned, exact)
            if design.reported == "changes":
                yield from _frequencies("signs of somebody who is never there", (sign > 0).astype(np.int64), [0.5, 0.5])
                yield from _frequencies("changes that do not count", _uncounted(design, sent, number), [0.5, 0.5])
                yield from _reported(signs, *(one[members & sent.busy] for one in _patterns(design, sent)))
        if symbols is not None:
            truth = design.answers if design.reported == "once" else 0
            chances = [float(symbols.other + symbols.spread * (n == truth)) for n in range(symbols.count)]
            yield from _frequencies("symbols of somebody who is never there", symbol, chances)


def _reported(signs: Signs, used: Ints, turned: Ints) -> Iterator[str]:
    """Yield numbers of turned signs among the reported ones whose frequencies are not those of the design."""
    for number in range(1, int(used.max(initial=0)) + 1):
        exact = [math.comb(number, i) * _chance(signs, number, i) for i in range(number + 1)]
        yield from _frequencies(f"signs of {number} changes", turned[used == number], exact)


def _uncounted(design: Design, sent: SentReports, number: int) -> Ints:
    """Return whether a report agrees with a change of the busy person that does not count, int64 [reports]."""
    counted, span, found = _counted(design, sent.answers), design.layers[number].span, [np.zeros(0, dtype=np.int64)]
    raw = [design.answers if one == NOT_THERE else one for one in sent.answers.tolist()]
    chosen = (sent.people.layer == number) & sent.busy
    for window in range(span - 1, len(raw), span):
        before, after = _node(design, counted, sent.answers, window, span)
        if before == after:
            one = _of(sent.reports[window], chosen)
            symbol = one.symbol.astype(np.int64)
            ends = (raw[window - span] if window >= span else design.answers, raw[window])
            left, right = (design.basis.signs(symbol, np.full(len(symbol), end)) for end in ends)
            found.append((one.sign == (right - left) // 2)[left != right].astype(np.int64))
    return np.concatenate(found)


def _of(reports: Reports, chosen: Flags) -> Reports:
    rows = chosen[reports.person]
    return Reports(
        person=reports.person[rows],
        layer=reports.layer[rows],
        symbol=reports.symbol[rows],
        sign=reports.sign[rows],
        design=reports.design,
    )


def _frequencies(name: str, found: Ints, exact: list[float]) -> Iterator[str]:
    counts = np.bincount(found, minlength=len(exact))
    if len(counts) > len(exact):
        yield f"{name}: a value that the design does not have"
    elif len(found):
        apart, allowed = float(np.abs(counts / len(found) - exact).max()), _allowed(len(found), len(exact))
        if apart > allowed:
            yield f"{name}: a frequency differs by {apart:.4f} from the design's, allowed {allowed:.4f}"


def _allowed(samples: int, values: int = 2) -> float:
    """Return the deviation of a frequency that correct draws exceed with little probability (Hoeffding)."""
    return math.sqrt(math.log(200 * values / FALSE_ALARM) / (2 * samples))


def _ratios(design: Design, sent: SentReports) -> Floats:
    """Return for each device ln of how much more likely its reports are from the busy person, float64 [devices]."""
    total, counted = np.zeros(len(sent.busy)), _counted(design, sent.answers)
    for window, reports in enumerate(sent.reports):
        for number, layer in enumerate(design.layers):
            one = _of(reports, sent.people.layer == number)
            node = _node(design, counted, sent.answers, window, layer.span)
            symbol = one.symbol.astype(np.int64)
            random, symbols = _kinds(layer)
            if symbols is not None:
                total[one.person] += _of_symbols(design, symbols, symbol, node)
            elif design.reported == "once" and random is not None:
                signs = [design.basis.signs(symbol, np.full(len(symbol), end)) for end in (design.answers, node[1])]
                odds = math.log(random.probability(0) / random.probability(1))
                total[one.person] += odds * ((one.sign == signs[1]).astype(float) - (one.sign == signs[0]))
    used, turned = _patterns(design, sent)
    for number, layer in enumerate(design.layers):
        random, _ = _kinds(layer)
        if random is not None and design.reported == "changes":
            for device in np.flatnonzero(sent.people.layer == number).tolist():
                total[device] += math.log(2 ** used[device] * _chance(random, int(used[device]), int(turned[device])))
    return total


def _patterns(design: Design, sent: SentReports) -> tuple[Ints, Ints]:
    """Return for each device the signs that it has used if it is the busy person's, and the turned ones among them."""
    counted = _counted(design, sent.answers)
    used, turned = (np.zeros(len(sent.busy), dtype=np.int64) for _ in range(2))
    for window, reports in enumerate(sent.reports):
        for number, layer in enumerate(design.layers):
            if layer.randomiser.signed and design.reported == "changes":
                one = _of(reports, sent.people.layer == number)
                node, symbol = _node(design, counted, sent.answers, window, layer.span), one.symbol.astype(np.int64)
                before, after = (design.basis.signs(symbol, np.full(len(symbol), end)) for end in node)
                change = (after - before) // 2
                used[one.person] += change != 0
                turned[one.person] += (change != 0) & (one.sign == -change)
    return used, turned


def _kinds(layer: Layer) -> tuple[Signs | None, Symbols | None]:
    """Return the randomiser of a layer: of signs, or of symbols."""
    if layer.randomiser.signed:
        return cast(Signs, layer.randomiser), None
    return None, cast(Symbols, layer.randomiser)


@cache
def _chance(signs: Signs, used: int, turned: int) -> float:
    """Return the probability of a pattern of `used` signs, of which `turned` are turned."""
    rest = signs.most - used
    return float(sum(math.comb(rest, i) * signs.probability(turned + i) for i in range(rest + 1)))


def _of_symbols(design: Design, random: Symbols, symbol: Ints, node: NodeEnds) -> Floats:
    if design.reported == "once":
        truths = [design.answers, node[1]]
    else:
        truths = [0, int(design.space.symbols(np.array([node[0]]), np.array([node[1]]))[0])]
    p, q = float(random.other), float(random.other + random.spread)
    idle, busy = (np.where(symbol == truth, math.log(q), math.log(p)) for truth in truths)
    found: Floats = busy - idle
    return found


def _counted(design: Design, answers: Ints) -> list[int]:
    """Return the busy person's counted answer at the end of each window: the bound, without the device's code."""
    counted, used, first, found = design.answers, 0, 0, []
    for window, answer in enumerate(np.where(answers == NOT_THERE, design.answers, answers).tolist()):
        within = design.bound.within
        counts = used < (design.bound.at_most or 0) if within is None else used == 0 or window - first <= within
        known = design.space.transitions
        if answer != counted and counts and (known is None or counted * (design.answers + 1) + answer in known):
            first = window if used == 0 else first
            counted, used = answer, used + 1
        found.append(counted)
    return found


def _node(design: Design, counted: list[int], answers: Ints, window: int, span: int) -> NodeEnds:
    if design.reported == "once":
        return design.answers, design.answers if answers[window] == NOT_THERE else int(answers[window])
    return design.answers if window < span else counted[window - span], counted[window]
