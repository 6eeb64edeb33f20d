"""Errors of smoothed numbers compared with published ones: `python -m benchmarks.smoothing`; about a minute.

The flights' exact daily numbers under the demo's plan, and synthetic levels under the plans of the error table, each
with fresh noise. Results on the flights are exact facts about them, which is allowed because the flights are public.
"""

import argparse
from collections.abc import Callable, Iterator
from pathlib import Path

import duckdb
import numpy as np
from numpy.typing import NDArray

from examples.flights.build import read_flights
from pipelines.epochs.plans import plan_of
from pipelines.spec.load import load
from privacy.accounting.accounting import Budget
from privacy.constraint import AtMost
from privacy.measure import Measure
from privacy.noise.distributions import NoiseDistribution
from privacy.noise.weighted import half_width
from privacy.planning.demand import Demand
from privacy.planning.make_plan import make_plan
from privacy.planning.plan import Plan
from privacy.planning.promise import Promise
from privacy.series import Series
from privacy.smoothing.noise_covariance import noise_covariances
from privacy.smoothing.segments import segments
from privacy.smoothing.walk import smooth
from privacy.strategies.choice import Choice

Numbers = NDArray[np.float64]

FLIGHTS = Path("examples/flights/spec.yaml")
DAYS = """
with flight as (
    select if(carrier in ('AA', 'B6', 'DL', 'EV', 'MQ', 'UA', 'US', 'WN'), carrier, 'other') as carrier, origin,
        make_date(year, month, day) - date '2013-01-01' as day, dep_time is null as cancelled
    from flights
)
select count(*) filter (not cancelled) as departures, count(*) filter (cancelled) as cancelled
from range(365) as days(day) cross join (select distinct carrier from flight)
cross join (select distinct origin from flight) left join flight using (day, carrier, origin)
group by day, carrier, origin order by day, carrier, origin
"""
WINDOWS, CELLS = 1024, 100
STEPS = {"constant": 0.0, "steps of 1": 1.0, "steps of 5": 5.0, "steps of 25": 25.0}


def flights() -> Iterator[tuple[str, Numbers]]:
    """Yield each of the demo's counts by name, [days, cells]; days are those of the scheduled departure."""
    with duckdb.connect() as connection:
        connection.register("flights", read_flights())
        found = connection.execute(DAYS).fetchnumpy()
    for name in ("departures", "cancelled"):
        yield name, found[name].reshape(365, 27).astype(np.float64)


def levels() -> Iterator[tuple[str, Numbers]]:
    """Yield synthetic levels [windows, cells]: random walks with steps of several sizes, and a step function."""
    rng = np.random.default_rng(1)
    for name, step in STEPS.items():
        yield name, 1000 + np.cumsum(step * rng.normal(size=(WINDOWS, CELLS)), axis=0)
    jumps = np.full((WINDOWS, CELLS), 1000.0)
    jumps[400:] += 500
    jumps[700:] -= 300
    yield "two jumps", jumps


def row(name: str, truth: Numbers, plan: Plan, query: int, series: Series) -> str:
    """Return a line of the table, for fresh noise of a plan on true numbers.

    Args:
        name: of the line.
        truth: exact numbers, [windows, cells].
        plan: of the release.
        query: the query's place in the plan.
        series: of the numbers.
    """
    released = plan.publishing(query, series)
    windows, (noise,) = len(truth), released.noise
    grid = plan.demands[query].measure.components[0].grid
    nothing = np.zeros((1 + windows, truth.shape[1]), dtype=np.int64)
    sample: Callable[..., NDArray[np.int64]] = lambda nodes: _sampled(noise, len(nodes.layer), truth.shape[1])  # noqa: E731
    published = truth + grid * released.strategy.step(None, nothing, series=[series], sample=sample)[1][0]
    weights = released.strategy.weights(series, windows)
    widths = {w.tobytes(): w for w in map(np.sort, weights)}
    halves = {key: half_width(noise, w, 0.95) for key, w in widths.items()}
    half = grid * np.array([halves[np.sort(w).tobytes()] for w in weights])[:, None]
    parts = segments(windows, windows)
    node = noise.variance * grid**2
    covariances = [node * found for found in noise_covariances(released.strategy, series, parts)]
    found = smooth(published, published - half, published + half, parts=parts, covariances=covariances)
    raw, better = (float(np.sqrt(((one - truth) ** 2).mean())) for one in (published, found.value))
    held = float(((found.low <= truth) & (truth <= found.high)).mean())
    proved = float((abs(published - truth) <= half).mean())
    width = float((found.high - found.low).mean() / (2 * half).mean())
    told = [f"{number:.2f}" for number in (raw, better, better / raw)]
    return f"| {' | '.join([name, *told, f'{100 * proved:.1f}', f'{100 * held:.1f}', f'{width:.2f}'])} |"


def _sampled(noise: NoiseDistribution, nodes: int, cells: int) -> NDArray[np.int64]:
    return noise.noise(nodes * cells).reshape(nodes, cells)


def main() -> None:
    argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0]).parse_args()
    print("| numbers | RMSE | smoothed | ratio | ci covers, % | model covers, % | width of model / ci |")
    print("|---|--:|--:|--:|--:|--:|--:|")
    plan = plan_of(load(FLIGHTS))
    for place, (name, truth) in enumerate(flights()):
        print(row(f"demo, {name}", truth, plan, place, Series(kind="entered")), flush=True)
    series = Series(kind="level")
    strategies: list[tuple[str, float]] = [("factorised", 1e-9), ("tree", 0.0)]
    for strategy, delta in strategies:
        choice = Choice(name=strategy)
        demand = Demand(name="n", measure=Measure(kind="count"), cells=1, series=(series,), choice=choice)
        plan = make_plan(
            [demand],
            promise=Promise(constraint=AtMost(4), window=1, windows=WINDOWS, owner=False),
            budget=Budget(epsilon=1.0, delta=delta),
            mechanism="auto",
            accounting=None,
        )
        for name, truth in levels():
            print(row(f"levels, {strategy}, {name}", truth, plan, 0, series), flush=True)


if __name__ == "__main__":
    main()
