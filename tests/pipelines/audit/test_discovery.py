"""The layer of keys that are found: it passes the program, and sees changes of the rule and of the threshold."""

from collections.abc import Callable
from dataclasses import replace
from functools import reduce
from random import Random

import numpy as np
import pytest

from pipelines.audit import discovery
from pipelines.audit.discovery import check_discovery
from pipelines.audit.findings import LayerResult
from pipelines.audit.prepared import Prepared, prepared
from pipelines.spec.load import load
from privacy.evidence.sums import reached
from privacy.noise.distributions import DiscreteGaussian, DiscreteLaplace, NoiseDistribution
from tests.audit.seeded import SPECS
from transforms.release import discovered_chunk


@pytest.fixture(scope="module")
def ready(tmp_path_factory: pytest.TempPathFactory) -> Prepared:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pipelines.audit.files.USUAL", 6)
        return prepared(load(SPECS / "foundspan.yaml"), tmp_path_factory.mktemp("audited"), Random(3))


@pytest.fixture(autouse=True)
def fewer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(discovery, "TRIALS", 2**12)
    monkeypatch.setattr(discovery, "MOST_ALONE", 9)


def attacked(ready: Prepared) -> LayerResult:
    (layer,) = check_discovery(ready.stages, ready.setting, seconds=0, choose=Random(5))
    return layer


@pytest.mark.slow
def test_the_program_passes_and_units_alone_reach_most_of_delta(ready: Prepared) -> None:
    layer = attacked(ready)

    assert layer.passed, layer.faults
    assert layer.tried["keys found"] > 20
    assert 0.8 < layer.measures["share"] <= 1


@pytest.mark.slow
def test_a_key_that_stays_a_candidate_is_seen(ready: Prepared, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(discovered_chunk, "candidates", lambda levels: np.logical_or.accumulate(levels > 0))

    assert any("public in other windows" in fault for fault in attacked(ready).faults)


@pytest.mark.slow
def test_half_of_the_margin_of_a_threshold_is_seen(ready: Prepared) -> None:
    plan = ready.stages.job.plan
    part = plan.discovered_of(0)
    assert part is not None
    parts = (replace(part, threshold=1 + part.threshold // 2),)
    job = replace(ready.stages.job, plan=replace(plan, parts=parts))

    layer = attacked(replace(ready, stages=replace(ready.stages, job=job)))

    assert any("times the delta of discovery" in fault for fault in layer.faults)


@pytest.mark.parametrize("terms", [1, 3])
@pytest.mark.parametrize(
    ("noise", "log_odds"),
    [(DiscreteLaplace(3.0), lambda n: -abs(n) / 3.0), (DiscreteGaussian(30.0), lambda n: -(n**2) / 1800)],
)
def test_bounds_of_tails_are_just_below_the_sum_of_all_outcomes(
    noise: NoiseDistribution, log_odds: Callable[[np.ndarray], np.ndarray], terms: int
) -> None:
    once = np.exp(log_odds(np.arange(-400, 401)))
    odds = reduce(np.convolve, [once / once.sum()] * terms)

    for reach in (round(times * (terms * noise.variance) ** 0.5) for times in (1, 3, 6)):
        exact = odds[terms * 400 + reach :].sum()
        assert 0.9 * exact < reached(noise, terms, reach) <= exact * (1 + 1e-9)
