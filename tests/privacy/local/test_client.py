"""State of a device: stored and restored, and which states are refused."""

import json
import re
from dataclasses import replace
from functools import reduce
from itertools import product
from operator import getitem
from typing import Any

import numpy as np
import pytest

from privacy.local.bound import LocalBound
from privacy.local.candidates import Method, candidates, tree
from privacy.local.client import enrol, report
from privacy.local.design import Design
from privacy.local.document import design_from_json, design_to_json
from privacy.local.kept import device_from_json, device_to_json
from privacy.local.mutation_space import MutationSpace, declared

SHAPE: dict[str, Any] = {"windows": 4, "arity": 2, "height": 2, "epsilon": 1.0}
DESIGN = tree(MutationSpace(answers=2), LocalBound(at_most=2), **SHAPE)
LIVED = (0, 1, 0, 1)


def test_a_device_restored_from_text_sends_the_same_reports() -> None:
    for device in (enrol(DESIGN, 1, most_epsilon=1.0) for _ in range(20)):
        sent = []
        for kept in (False, True):
            state = device
            for window, answer in enumerate(LIVED):
                if kept:
                    state = device_from_json(json.loads(json.dumps(device_to_json(state))), DESIGN)
                reports, state = report(DESIGN, state, window, np.array([answer]))
                sent.append((kept, window, reports.symbol.tolist(), reports.sign.tolist()))
        assert [row[1:] for row in sent if row[0]] == [row[1:] for row in sent if not row[0]]


def test_a_device_of_another_design_is_refused() -> None:
    device = enrol(DESIGN, 1, most_epsilon=1.0)
    other = replace(DESIGN, survey="another one")

    with pytest.raises(ValueError, match=r"^design: .* a device of another design"):
        device_from_json(device_to_json(device), other)
    with pytest.raises(ValueError, match=r"^design: the device is enrolled in another design"):
        report(other, device, 0, np.array([1]))


def test_a_design_that_costs_more_than_its_owner_agreed_to_is_refused() -> None:
    with_delta = tree(MutationSpace(answers=2), LocalBound(at_most=2), **SHAPE, delta=0.5, method="mutations")

    enrol(DESIGN, 1, most_epsilon=1.0)
    enrol(with_delta, 1, most_epsilon=1.0, most_delta=0.5)
    for design, agreed, key in (
        (DESIGN, {"most_epsilon": 0.99}, "epsilon"),
        (DESIGN, {"most_epsilon": float("nan")}, "epsilon"),
        (with_delta, {"most_epsilon": 1.0}, "delta"),
        (with_delta, {"most_epsilon": 1.0, "most_delta": 0.49}, "delta"),
    ):
        with pytest.raises(ValueError, match=rf"^{key}: the design asks for .* \(most_{key}\)"):
            enrol(design, 1, **agreed)


def test_impossible_states_of_a_device_are_refused_and_not_truncated() -> None:
    """70,000 used signs would be 4,464 in 16 bits, and a sign without a stored pattern would be the truth."""
    device = enrol(DESIGN, 1, most_epsilon=1.0)
    for window, answer in enumerate(LIVED[:3]):
        _, device = report(DESIGN, device, window, np.array([answer]))
    told = device_to_json(device)
    assert device_to_json(device_from_json(told, DESIGN)) == told
    wrong = {
        "version": (0, 9),
        "window": (-1, 5, 10**20),
        "layer": (-1, 2, 256, 10**20),
        "turn": (1, 2**63),
        "spent": (-1, told["used"] + 1, 3, 65_536, 70_000, 10**20),
        "counted": (-1, 3, 2**64),
        "began": (-1, 3),
        "used": (-1, 3, 10**20),
        "first": (-1, 3, 10**20),
        "patterns": (-1, 4, 1 << 64),
        "key": ("00", "Z" * 64, "é" * 64, 7),
        "design": ("", "0" * 64),
    }
    assert wrong.keys() == told.keys()
    for name, values in wrong.items():
        for value in (*values, None, True, "1", 1.0, []):
            with pytest.raises(ValueError, match=name):
                device_from_json({**told, name: value}, DESIGN)


@pytest.mark.slow
def test_a_state_with_more_signs_used_than_changes_counted_is_refused() -> None:
    """Its next change would be reported with a sign that was not drawn. Each device of a real history is accepted."""
    for bound in (LocalBound(at_most=2), LocalBound(within=1)):
        design = tree(MutationSpace(answers=1), bound, **(SHAPE | {"windows": 6}))
        for history in product((-1, 0), repeat=6):
            device = enrol(design, 1, most_epsilon=1.0)
            for window, answer in enumerate(history):
                _, device = report(design, device, window, np.array([answer]))
                told = device_to_json(device)
                assert device_to_json(device_from_json(told, design)) == told
                if told["spent"] + (told["counted"] != told["began"]) == told["used"]:
                    with pytest.raises(ValueError, match="spent"):
                        device_from_json({**told, "spent": told["spent"] + 1}, design)


NASTY = (None, True, -1, 0, 1, 2, 256, 2**31, 2**64, 10**20, 1.5, "", "1", "0x1.0p+0", "nan", [], [-1, 1], {}, [{}])
TRANSITIONS = ([], [-1, 1], [0], [1, 1], [2, 1], [1, 9], [1, 2, 10**20], [[1]], [True], [1.0])


@pytest.mark.parametrize("method", ["signs", "mutations"])
def test_a_design_of_anything_else_is_refused_with_its_place(method: Method) -> None:
    """Each member in turn is replaced or removed; a document that is accepted is a design, and reads back the same."""
    design = tree(declared(2, [(2, 0), (0, 1)]), LocalBound(at_most=2), **SHAPE | {"height": 1}, method=method)
    told = design_to_json(design)
    for path in _paths(told):
        key = [each for each in path if isinstance(each, str)][-1]
        for value in (*NASTY, *(TRANSITIONS if key == "transitions" else ())):
            changed = json.loads(json.dumps(told))
            place = reduce(getitem, path[:-1], changed)
            place[path[-1]] = value
            if (found := _accepted(changed)) is not None:
                enrol(found, 1, most_epsilon=50.0, most_delta=1.0)
        del (missing := json.loads(json.dumps(told)))[path[0]]
        with pytest.raises(ValueError, match=f"^{path[0]}"):
            design_from_json(missing)


@pytest.mark.parametrize("transitions", [(), (-1, 1), (1, 2, 10**20), (1, 9), (0, 1), (2, 1), (1, 1)])
def test_transitions_that_are_no_ascending_changes_are_refused(transitions: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=r"^transitions: expected ascending pairs"):
        MutationSpace(answers=2, transitions=transitions)


def _accepted(told: Any) -> Design | None:
    try:
        return design_from_json(told)
    except ValueError as error:
        if not re.match(r"[a-z]+(\[|\.|:|=)", str(error)):
            raise AssertionError(f"no member is named: {error}") from error
        return None


def _paths(told: Any) -> list[tuple[Any, ...]]:
    """Yield the paths of all members, including nested ones."""
    items = told.items() if isinstance(told, dict) else enumerate(told) if isinstance(told, list) else ()
    return [path for key, value in items for path in ((key,), *((key, *rest) for rest in _paths(value)))]


def test_no_two_devices_draw_from_one_key() -> None:
    """A known key would remove the noise from every report."""
    assert len({enrol(DESIGN, 1, most_epsilon=1.0).key for _ in range(20)}) == 20  # each of 32 bytes


def test_a_person_who_reports_once_does_so_in_one_window() -> None:
    """Of 500 devices at least one has its turn before the last window, except with probability 2^-500."""
    found = candidates(MutationSpace(answers=2), LocalBound(at_most=2), windows=2, epsilon=1.0)
    for design in (candidate.design for candidate in found if candidate.method == "once"):
        state, sent = enrol(design, 500, most_epsilon=1.0), []
        for window in range(design.windows):
            reports, state = report(design, state, window, np.zeros(500, dtype=np.int64))
            sent += reports.person.tolist()
        assert sorted(sent) == [*range(500)]
