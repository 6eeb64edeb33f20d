"""The demo on the real flights: its numbers against plain SQL, and the storm against its noise.

A correct release fails this module with probability FALSE_ALARM at most, over its noise.
"""

from collections.abc import Iterator
from pathlib import Path

import duckdb
import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.stats import norm

from examples.flights import build, show
from pipelines.cli import main
from tests.pipelines.spec_text import changed

SPEC = str(Path(__file__).resolve().parents[2] / "examples/flights/spec.yaml")
FALSE_ALARM = 1e-6
DAYS, CELLS = 365, 27
SCALE = 4.0  # of a count: one flight changes one node by one, and a quarter of epsilon is its share

# What the release counts, said in plain SQL: every flight that became airborne or was cancelled,
# in the day (New York's, without daylight saving time) and cell where it did. No flight does so
# twice: the constraint cuts nothing off, and both columns of the truth must be this.
REFERENCE_OF = """
with entered as (
    select
        (epoch_us(event_time) - $start) // $day as day,
        if(after_carrier in ('AA','B6','DL','EV','MQ','UA','US','WN'), after_carrier, 'other')
            as carrier,
        after_origin as origin, after_status as status,
        greatest(least(after_delay, 160), -20) as delay
    from read_parquet('out/flights/changelog/{files}.parquet')
    where after_status in ('airborne', 'cancelled')
        and before_status is distinct from after_status
),
cell as (
    select * from range({days}) as days(day),
        (select unnest(['AA','B6','DL','EV','MQ','UA','US','WN','other']) as carrier),
        (select unnest(['EWR','JFK','LGA']) as origin)
),
told as (
    select day, carrier, origin,
        count(*) filter (status = 'airborne')::double as departures,
        count(*) filter (status = 'cancelled')::double as cancelled,
        avg(delay) filter (status = 'airborne') as delay
    from cell left join entered using (day, carrier, origin)
    group by all
)
select 'departures' as query, day, carrier, origin, departures as expected from told
union all select 'cancelled', day, carrier, origin, cancelled from told
union all select 'delay', day, carrier, origin, delay from told
"""
REFERENCE = REFERENCE_OF.format(files="*", days=DAYS)
JANUARY = REFERENCE_OF.format(files="2013-01", days=31)

COMPARED = f"""
select
    count(*) as rows,
    count(*) filter (truth.query is null or expected.query is null) as alone,
    count(*) filter (exact is distinct from bounded) as cut,
    count(*) filter (
        (exact is null) <> (expected is null) or abs(exact - expected) > 1e-4
    ) as differ
from read_parquet('truth.parquet') as truth
full join ({JANUARY}) as expected
    on truth.query = expected.query and truth.kind = 'entered'
    and truth.carrier = expected.carrier and truth.origin = expected.origin
    and (epoch_us(window_start) - $start) // $day = expected.day
"""
Counts = tuple[NDArray[np.float64], NDArray[np.float64]]
CALENDAR = {
    "start": int(np.datetime64("2013-01-01T05:00", "us").astype(np.int64)),
    "day": 86_400_000_000,
}


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder that holds the demo's changelog, and is the working folder."""
    folder = tmp_path_factory.mktemp("demo")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        build.main()
        yield folder


@pytest.mark.usefixtures("demo")
def test_every_flight_has_a_separate_id_and_a_chain_without_gaps() -> None:
    """Covers the chains of every 32nd flight."""
    changelog = "read_parquet('out/flights/changelog/*.parquet')"
    rows = duckdb.connect().execute(f"select count(*), count(distinct entry_id) from {changelog}").fetchone()
    chained = (
        duckdb.connect()
        .execute(
            f"""
        select count(*) > 25_000, count(*) filter (before_status is distinct from last)
        from (
            select *, lag(after_status) over life as last
            from {changelog} where hash(entry_id) % 32 = 0
            window life as (partition by entry_id order by event_time, after_status is null)
        )
        """
        )
        .fetchone()
    )

    assert rows == (1_408_448, 336_776)
    assert chained == (True, 0)


@pytest.mark.usefixtures("demo")
def test_truth_is_that_of_plain_sql_in_every_cell() -> None:
    """Covers January; numbers of the whole year are compared with plain SQL by their noise."""
    spec = changed(
        "until: 2014-01-01", "until: 2013-02-01", changed("/*.parquet", "/2013-01.parquet", Path(SPEC).read_text())
    )
    Path("january.yaml").write_text(spec)
    code = main(["evaluate", "january.yaml", "--runs=1", "--truth", "truth.parquet"])

    compared = duckdb.connect().execute(COMPARED, CALENDAR).fetchone()
    assert code == 0
    assert compared == (3 * 31 * CELLS, 0, 0, 0)


@pytest.fixture(scope="module")
def errors(demo: Path) -> dict[str, Counts]:
    """Runs the release. Of both counts: the truth and the noise, each [days, cells]."""
    assert main(["run", SPEC]) == 0
    query = f"""
        select expected.query, expected, value - expected as noise
        from read_parquet($files) as told join ({REFERENCE}) as expected
            on told.query = expected.query and told.carrier = expected.carrier
            and told.origin = expected.origin
            and (epoch_us(window_start) - $start) // $day = expected.day
        order by day, expected.carrier, expected.origin
    """
    rows = duckdb.connect().execute(query, CALENDAR | {"files": show.published()}).fetchnumpy()
    found = {}
    for name in ("departures", "cancelled"):
        of_query = rows["query"] == name
        found[name] = (
            rows["expected"][of_query].reshape(DAYS, CELLS),
            rows["noise"][of_query].reshape(DAYS, CELLS),
        )
    return found


@pytest.mark.parametrize("query", ["departures", "cancelled"])
def test_published_counts_have_the_noise_that_epsilon_asks_for(errors: dict[str, Counts], query: str) -> None:
    """Mean square of 9,855 draws, normal approximation; 0.9 of the scale would fail."""
    _, noise = errors[query]
    a = 1 / SCALE
    variance = 2 * np.exp(-a) / (1 - np.exp(-a)) ** 2
    fourth = 2 * np.exp(-a) * (1 + 10 * np.exp(-a) + np.exp(-2 * a)) / (1 - np.exp(-a)) ** 4
    spread = np.sqrt((fourth - variance**2) / noise.size)

    z = norm.isf(FALSE_ALARM / 4 / 2)
    assert abs(np.mean(noise**2) - variance) <= z * spread


def test_the_storm_is_visible_in_its_fortnight(
    errors: dict[str, Counts],
) -> None:
    truth, noise = errors["cancelled"]
    fortnight = range(33, 45)  # 3 to 14 February
    storm = [38, 39]
    calm = [day for day in fortnight if day not in storm]
    exact = truth.sum(axis=1)
    published = exact + noise.sum(axis=1)

    # Each of the 2 x 10 comparisons may go wrong with its share of the false alarms.
    far = furthest(draws=2 * CELLS, probability=FALSE_ALARM / 2 / (len(storm) * len(calm)))
    assert exact[storm].min() - exact[calm].max() > far
    assert published[storm].min() > published[calm].max()


@pytest.mark.usefixtures("errors")
def test_the_table_marks_the_storm_and_the_chart_is_drawn(
    capsys: pytest.CaptureFixture[str],
) -> None:
    show.main()

    table = capsys.readouterr().out.splitlines()
    assert [line.split()[:3] for line in table if "<- the storm" in line] == [
        ["Fri", "08", "Feb"],
        ["Sat", "09", "Feb"],
    ]
    assert show.CHART.read_bytes().startswith(b"\x89PNG")
    assert table[-2].startswith("The storm: on Friday, 8 February and Saturday, 9 February 2013")


@pytest.mark.usefixtures("errors")
def test_the_report_names_the_storm(capsys: pytest.CaptureFixture[str]) -> None:
    """Each of its days is far out by eight deviations of the noise, and two others would have to pass it by four."""
    assert main(["report", SPEC, "-o", "report.html"]) == 0

    said = capsys.readouterr().out
    for day in ("8 February 2013", "9 February 2013"):
        assert f"stands out: Cancelled flights, entered, all cells together, {day}: " in said
        assert f"<li>all cells together, {day}: " in Path("report.html").read_text()
    assert "mostly noise" in said


def furthest(*, draws: int, probability: float) -> float:
    """What a sum of `draws` discrete Laplace variables exceeds, either way, with `probability`.

    Chernoff's bound, minimised over t in (0, 1/SCALE). The variable's moment generating function
    at t is at most 1 / (1 - (t SCALE)^2), the continuous distribution's: (cosh x - 1) / x^2 increases in x.
    """

    def distance(t: float) -> float:
        return float((np.log(2 / probability) - draws * np.log1p(-((t * SCALE) ** 2))) / t)

    return float(minimize_scalar(distance, bounds=(1e-6, 1 / SCALE - 1e-6), method="bounded").fun)
