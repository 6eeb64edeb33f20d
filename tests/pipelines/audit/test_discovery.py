"""The layer of keys that are found: it passes the program, and sees changes of the rule and of the threshold."""

from dataclasses import replace
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
    monkeypatch.setattr(discovery, "MOST_ALONE", 6)


def attacked(ready: Prepared) -> LayerResult:
    (layer,) = check_discovery(ready.stages, ready.setting, seconds=0, choose=Random(5))
    return layer


def test_the_program_passes_and_units_alone_reach_most_of_delta(ready: Prepared) -> None:
    layer = attacked(ready)

    assert layer.passed, layer.faults
    assert layer.tried["keys found"] > 20
    assert 0.8 < layer.measures["share"] <= 1


def test_a_key_that_stays_a_candidate_is_seen(ready: Prepared, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(discovered_chunk, "candidates", lambda levels: np.logical_or.accumulate(levels > 0))

    assert any("public in other windows" in fault for fault in attacked(ready).faults)


def test_half_of_the_margin_of_a_threshold_is_seen(ready: Prepared) -> None:
    plan = ready.stages.job.plan
    part = plan.discovered_of(0)
    assert part is not None
    parts = (replace(part, threshold=1 + part.threshold // 2),)
    job = replace(ready.stages.job, plan=replace(plan, parts=parts))

    layer = attacked(replace(ready, stages=replace(ready.stages, job=job)))

    assert any("times the delta of discovery" in fault for fault in layer.faults)


@pytest.mark.parametrize(("noise", "variance"), [(DiscreteLaplace(3.0), 3), (DiscreteGaussian(30.0), 3)])
def test_bounds_of_tails_hold_for_frequencies(noise: NoiseDistribution, variance: int) -> None:
    reach = round(2.5 * (variance * noise.variance) ** 0.5)
    samples = noise.noise(variance * 100_000).reshape(variance, -1).sum(axis=0)

    share = float((samples >= reach).mean())

    lower, upper = (
        reached(noise, variance, reach),
        float(noise.tail(variance, np.array([float(reach)]), summed=True)[0]),
    )
    assert lower < upper
    assert abs(share - lower) < 0.008  # off by chance with probability below 1e-6 (Hoeffding)
