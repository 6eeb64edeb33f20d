"""This version continues a release of an earlier version, with its plan, its state and its noise."""

import json
import math
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from scipy.signal import lfilter

from pipelines.store.store import Store
from tests.e2e.specs import contents, published
from tests.releases.continued import expected, run_third_epoch, unpacked
from tests.releases.make import HERE, SPECS
from tests.test_house import setup_arguments

RELEASES = sorted(path.parent.relative_to(HERE).as_posix() for path in HERE.glob("*/*/release.tar.gz"))
NUMBER = re.compile(r"-?\d+\.\d+(?:e[-+]\d+)?")


@dataclass(frozen=True)
class Continued:
    """A release after one more epoch.

    Attributes:
        before: Public files and commits as the earlier version left them, by side and name.
        made: Output and published values of the earlier version, without noise.
        found: Output and published values of this version, without noise.
    """

    folder: Path
    before: dict[str, dict[str, bytes]]
    made: Any
    found: Any


@pytest.fixture(scope="module", params=RELEASES)
def continued(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Continued:
    folder = unpacked(HERE / request.param, tmp_path_factory.mktemp("release"))
    before = {side: contents(folder / side) for side in ("public", "private/commits")}
    run_third_epoch(folder)
    made = json.loads((HERE / request.param / "expected.json").read_text())
    return Continued(folder, before, made, json.loads(json.dumps(expected(folder))))


def assert_same(found: Any, told: Any, where: str = "") -> None:
    """Assert equality. Floats may differ in their last digits, as versions of numerical libraries do.

    This version may have further members of an object.

    Args:
        found: Values of this version.
        told: Values of the earlier version.
        where: Path to the values, for the message.
    """
    if isinstance(told, dict):
        assert found.keys() >= told.keys(), where
        for key in told:
            assert_same(found[key], told[key], f"{where}.{key}")
    elif isinstance(told, list):
        assert len(found) == len(told), where
        for place, one in enumerate(told):
            assert_same(found[place], one, f"{where}[{place}]")
    elif isinstance(told, float):
        assert math.isclose(found, told, rel_tol=1e-9), where
    elif isinstance(told, str):
        assert NUMBER.split(found) == NUMBER.split(told), where
        assert_same([*map(float, NUMBER.findall(found))], [*map(float, NUMBER.findall(told))], where)
    else:
        assert found == told, where


def test_this_version_has_stored_releases() -> None:
    assert {f"{setup_arguments()['version']}/{name}" for name in SPECS} <= {*RELEASES}


@pytest.mark.few(4)
def test_values_without_noise_equal_those_of_the_earlier_version(continued: Continued) -> None:
    assert_same(continued.found, continued.made)


def test_published_and_committed_files_do_not_change(continued: Continued) -> None:
    folder = continued.folder
    for side, files in continued.before.items():
        now = contents(folder / side)
        kept = {name for name in files if name != "manifest.json"}
        assert {name: now[name] for name in kept} == {name: files[name] for name in kept}
    history = Store(str(folder / "public"), str(folder / "private")).open()
    assert history is not None
    assert (len(history.commits), history.shown) == (3, 3)
    assert continued.found["plan"]["begun"] is True


def test_each_bounded_value_is_published_once(continued: Continued) -> None:
    """At this epsilon no standard deviation is above 0.02; a Gaussian exceeds 40 of them with probability < 1e-300."""
    truth = pq.read_table(continued.folder / "private/truth.parquet").to_pandas()  # which `expected` wrote
    estimates = published(continued.folder, "estimates").to_pandas()
    estimates = estimates[~estimates["kind"].str.endswith("_quantile")]
    cells = [key for key in ("ward", "age", "room") if key in truth.columns]
    keys = ["query", "kind", "window_start", "window_end", *cells]
    for table in (estimates, truth):  # CSV has no types
        table[cells] = table[cells].astype(object).replace("", None).where(table[cells].notna(), None)
        table[["window_start", "window_end"]] = table[["window_start", "window_end"]].apply(pd.to_datetime, utc=True)

    both = estimates.merge(truth, on=keys, validate="one_to_one")

    assert len(both) == len(estimates) == len(truth)
    assert (both["bounded"] != 0).sum() > 10
    assert both["stddev"].max() < 0.02
    told = both[both["stddev"].notna()]  # except values that an adaptive policy repeats
    assert len(told) > 10
    assert np.abs(told["value"] - told["bounded"]).max() < 0.8


@pytest.mark.parametrize("continued", [one for one in RELEASES if one.endswith("/everything")], indirect=True)
def test_estimates_are_sums_of_the_nodes_of_all_epochs(continued: Continued) -> None:
    """Levels of the third epoch use the noise of earlier epochs, which is in nodes that these epochs published."""
    folder = continued.folder
    nodes, estimates = (published(folder, side).to_pandas() for side in ("nodes", "estimates"))
    levels = estimates[estimates["kind"] == "level"].sort_values("window_end")
    plan = json.loads((folder / "public/plan.json").read_text())
    (filter_,) = [query["parts"][0]["strategy"] for query in plan["queries"] if query["demand"]["name"] == "filtered"]
    coefficients = np.array(filter_["kernel"]["integers"]) / 2**20

    for ward in ("a", "b"):
        told = levels[(levels["query"] == "filtered") & (levels["ward"] == ward)]["value"].to_numpy()
        noisy = nodes[(nodes["query"] == "filtered") & (nodes["ward"] == ward)].sort_values("node_end")["noisy_value"]
        assert len(noisy) == len(told) + 1 == 8
        np.testing.assert_allclose(np.cumsum(lfilter([1.0], coefficients, noisy))[1:], told, atol=1e-9)

        told = levels[(levels["query"] == "covers") & (levels["ward"] == ward)]["value"].to_numpy()
        own = nodes[(nodes["query"] == "covers") & (nodes["ward"] == ward)]
        for level, end in zip(told, sorted(own["node_end"].unique())[1:], strict=True):
            assert abs(level - cover(own, end)) < 1e-9


def cover(nodes: pd.DataFrame, end: pd.Timestamp) -> float:
    """Return the sum of the initial level and the largest nodes up to a moment."""
    total = 0.0
    while not pd.isna(end):
        last = nodes[nodes["node_end"] == end].sort_values("layer").iloc[-1]
        total, end = total + last["noisy_value"], last["node_start"]
    return total
