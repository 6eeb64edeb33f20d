"""What a device keeps."""

import json

import numpy as np
import pytest

from privacy.exact import Members
from privacy.local.bound import LocalBound
from privacy.local.client import enrol, report
from privacy.local.document import device_from_json, device_to_json
from privacy.local.mutation_space import MutationSpace
from privacy.local.plan import candidates, tree

DESIGN = tree(MutationSpace(answers=2), LocalBound(at_most=2), windows=4, arity=2, height=2, epsilon=1.0)
LIVED = (0, 1, 0, 1)


def test_a_device_that_was_kept_as_text_sends_what_it_would_have_sent() -> None:
    for device in (enrol(DESIGN, 1) for _ in range(20)):
        sent = []
        for kept in (False, True):
            state = device
            for window, answer in enumerate(LIVED):
                if kept:
                    state = device_from_json(Members(json.loads(json.dumps(device_to_json(state)))), DESIGN)
                reports, state = report(DESIGN, state, window, np.array([answer]))
                sent.append((kept, window, reports.symbol.tolist(), reports.sign.tolist()))
        assert [row[1:] for row in sent if row[0]] == [row[1:] for row in sent if not row[0]]


def test_a_device_of_another_design_is_refused() -> None:
    told = device_to_json(enrol(DESIGN, 1))

    for name, value in (("layer", 2), ("counted", 3), ("window", 5), ("version", 9), ("key", "00")):
        with pytest.raises(ValueError, match=r"another design|later version"):
            device_from_json(Members({**told, name: value}), DESIGN)


def test_no_two_devices_draw_from_one_key() -> None:
    """Who knew it could take the noise off every report."""
    assert len({enrol(DESIGN, 1).key for _ in range(20)}) == 20  # of 32 bytes each


def test_who_reports_once_does_so_in_one_window() -> None:
    """Of 500 devices at least one has its turn before the last window, but with probability 2^-500."""
    found = candidates(MutationSpace(answers=2), LocalBound(at_most=2), windows=2, epsilon=1.0)
    for design in (candidate.design for candidate in found if candidate.method == "once"):
        state, sent = enrol(design, 500), []
        for window in range(design.windows):
            reports, state = report(design, state, window, np.zeros(500, dtype=np.int64))
            sent += reports.person.tolist()
        assert sorted(sent) == [*range(500)]
