"""The layer of decisions has the transcripts of each policy, and its streams reach most of each claim."""

import math
from random import Random

import pytest

from pipelines.audit.adaptive import TRANSCRIPTS
from privacy.adaptive.base import Period, Rule
from privacy.adaptive.budget import scales_for
from privacy.adaptive.dsft import DsftRule
from privacy.adaptive.fixed import FixedRule
from privacy.adaptive.pegasus import PegasusRule
from privacy.adaptive.table import POLICIES
from privacy.cells.base import Sketcher
from privacy.cells.each import Each
from privacy.cells.kdtree.kdtree import kdtree
from privacy.cells.layers import Layers
from privacy.cells.product import Product
from privacy.planning.adaptive_part import AdaptivePart

SPAN = Period(span=2)
TREE = kdtree((6, 5), (True, True), height=1, share=0.3)
FIXED, DSFT = FixedRule(period=SPAN, interval=3), DsftRule(period=SPAN, decisions=0.4, samples=1, threshold=9)
CASES: dict[str, tuple[Rule, Sketcher, float]] = {
    "kdtree": (FIXED, TREE, 0.999),
    "kdtree with decisions": (DSFT, TREE, 0.8),
    "tree": (FIXED, Product(axes=(Layers(cells=7, sizes=(1, 2, 4), weights=(1, 1, 1)),)), 0.999),
    "pegasus": (PegasusRule(period=SPAN, decisions=0.4, threshold=9), Each(cells=9), 0.7),
    "pegasus, everything": (PegasusRule(period=Period(windows=3), decisions=0.4, threshold=9), Each(cells=9), 0.65),
}


def test_each_policy_has_transcripts() -> None:
    assert {*TRANSCRIPTS} == {*POLICIES}


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_streams_that_are_made_or_drawn_cost_most_of_the_claim_and_never_more(case: str) -> None:
    rule, over, least = CASES[case]
    scales = scales_for(rule, budget=1.0, sensitivity=2, over=over)
    part, kind, choose = (
        AdaptivePart(query=0, rule=rule, scales=scales, share=1.0, over=over),
        TRANSCRIPTS[rule.name],
        Random(1),
    )
    made = [*kind.made(part)]
    drawn = [kind.drawn(part, choose) for _ in range(5)]
    drawn += [kind.changed(stream, part, choose) for stream in (*drawn, *made[:5])]

    assert {wrong for stream in (*made, *drawn[:5]) for wrong in kind.wrong(part, stream)} == set()
    losses = [abs(two - one) for one, two in (kind.log_chances(part, stream) for stream in (*made, *drawn))]
    assert least < max(loss for loss in losses if not math.isnan(loss)) <= 1 + 1e-9
