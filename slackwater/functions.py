"""The commands as functions of a spec; each is one command, called as the command line calls it.

A moment is a datetime with a zone, or text as the command line takes it.
"""

from argparse import Namespace
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path

import pyarrow as pa

from pipelines.changelog.simulate import simulate as simulate_command
from pipelines.epochs.run import run as run_command
from pipelines.reports.answer import asked_of
from pipelines.reports.evaluate import evaluate as evaluate_command
from pipelines.reports.evaluate_compared import evaluate_compared
from pipelines.reports.plan_command import plan as plan_command
from pipelines.reports.published import published
from pipelines.reports.show import numbers
from pipelines.spec.load import Spec, load
from pipelines.spec.times import MICROSECOND
from slackwater.arguments import count_of, duration_of, moment_of, positive_of
from slackwater.said import Evaluated, Planned, Ran, Simulated
from transforms.common.errors import SpecError


def plan(spec: str | Path | Spec, *, until: datetime | str | None = None) -> Planned:
    """What a release will cost and how far off its numbers will be; reads no data and costs no privacy.

    Args:
        spec: what `load` gives, or the path of one.
        until: errors are averaged over the windows up to then; None: to the schedule's end, or to now.

    Raises:
        SpecError: the spec is wrong, or `until` has no zone.

    >>> planned = plan("templates/specs/wards.yaml")
    >>> round(planned.epsilon, 9), planned.delta
    (1.0, 0.0)
    """
    arguments = Namespace(
        spec=_path(spec), until=moment_of("until", until), compare=None, vary=None, target=None, explain=False
    )
    document, text = plan_command(arguments, [])
    return Planned(
        release=document["release"],
        epsilon=document["loss"]["epsilon"],
        delta=document["loss"]["delta"],
        statement=document["statement"],
        conditions=tuple(document["conditions"]),
        warnings=tuple(document["warnings"]),
        document=document,
        text=text,
    )


def run(
    spec: str | Path | Spec,
    *,
    until: datetime | str | None = None,
    shards: int | None = None,
    assume_complete: bool = False,
    options: Sequence[str] = (),
) -> Ran:
    """Sample the noise of the windows that have closed, and publish them; what is published is final.

    Noise of a number is sampled once: a second call has nothing to do until the next window closes, and one that was
    killed is finished by the next.

    Args:
        spec: what `load` gives, or the path of one.
        until: only windows that have closed by then; None: by now.
        shards: into how many parts the units are split, in the first run; None: as the size of the input asks.
        assume_complete: publish what the clock says is over, whatever `changelog.freshness` says.
        options: Beam's pipeline options as on the command line, such as `--runner=FlinkRunner`.

    Raises:
        SpecError: the spec, an argument or an option is wrong.
        InputError: the data cannot be used.
        RefusedError: the folders hold another release, or another run was first.

    Example:
        `run("wards.yaml").windows` is how many windows are new.
    """
    arguments = Namespace(
        spec=_path(spec),
        until=moment_of("until", until),
        shards=count_of("shards", shards),
        assume_complete=assume_complete,
        poll=None,
        lag=None,
    )
    document, text = run_command(arguments, [*options])
    return Ran(
        release=document["release"],
        windows=document["windows"],
        public=document["public"],
        files=tuple(document.get("files", ())),
        document=document,
        text=text,
    )


def evaluate(
    spec: str | Path | Spec,
    *,
    until: datetime | str | None = None,
    runs: int = 10,
    truth: str | Path | None = None,
    compare: Sequence[str | Path | Spec] = (),
    shards: int | None = None,
    options: Sequence[str] = (),
) -> Evaluated:
    """The mechanism against the truth, for the data controller alone; publishes nothing and spends nothing.

    Args:
        spec: what `load` gives, or the path of one.
        until: only windows that have closed by then; None: by now.
        runs: how often noise is sampled.
        truth: a Parquet file for exact and bounded numbers, on the private side.
        compare: specs whose errors stand beside its own; then `document` has `specs`, one for each. To choose by them
            is a look at the data, but for those of `simulate`.
        shards, options: as of `run`.

    Raises:
        SpecError, InputError: as `run`; or `truth` is given beside `compare`.

    Example:
        `evaluate("wards.yaml").warnings` says where numbers would be useless. Nothing of it may be published.
    """
    arguments = Namespace(
        spec=_path(spec),
        until=moment_of("until", until),
        runs=count_of("runs", runs),
        truth=None if truth is None else str(truth),
        compare=[_path(other) for other in compare],
        shards=count_of("shards", shards),
    )
    document, text = (evaluate_compared if arguments.compare else evaluate_command)(arguments, [*options])
    own = document["specs"][0] if "specs" in document else document
    return Evaluated(
        release=own["release"],
        windows=own["windows"],
        warnings=tuple(own.get("warnings", ())),
        document=document,
        text=text,
    )


def simulate(
    spec: str | Path | Spec,
    folder: str | Path,
    *,
    arrivals: float,
    stay: timedelta,
    change: timedelta | None = None,
    burstiness: float = 0.0,
    entries: float = 1.0,
    windows: int | None = None,
    seed: int | None = None,
) -> Simulated:
    """A synthetic changelog, from public rates, and a copy of the spec that reads it.

    What is compared on it, by `evaluate(made.spec, until=made.until, compare=[...])`, costs no privacy.

    Args:
        folder: a new one.
        arrivals: entries that come in a window, in the mean.
        stay: how long they stay, in the mean.
        change: from one change of an entry to the next, in the mean; None: they do not change.
        burstiness: variance of how busy windows are, beside a mean of 1.
        entries: of one owner, in the mean.
        windows: how many; None: the schedule's, or 100.
        seed: for the same changelog again.

    Raises:
        SpecError: the spec or a rate is wrong, or the folder is there already.

    Example:
        `simulate("wards.yaml", "simulated", arrivals=40, stay=timedelta(days=5)).spec` is the path of the copy.
    """
    arguments = Namespace(
        spec=_path(spec),
        output=str(folder),
        arrivals=positive_of("arrivals", arrivals),
        stay=duration_of("stay", stay),
        change=None if change is None else duration_of("change", change),
        burstiness=0.0 if burstiness == 0 else positive_of("burstiness", burstiness),
        entries=positive_of("entries", entries),
        windows=count_of("windows", windows),
        seed=seed,
    )
    document, text = simulate_command(arguments, [])
    return Simulated(
        spec=document["spec"],
        rows=document["rows"],
        windows=document["windows"],
        until=datetime.fromisoformat(document["until"]),
        text=text,
    )


def estimates(spec: str | Path | Spec, *, queries: Sequence[str] | None = None) -> pa.Table:
    """The published estimates of all epochs, as one Arrow table; from the public side alone, so it costs no privacy.

    Args:
        spec: what `load` gives, or the path of one, or the public folder of a release.
        queries: their names; None: all.

    Returns:
        columns `query`, `kind`, `window_start`, `window_end` (UTC), each key, `value`, `stddev`, `ci_low`, `ci_high`.

    Raises:
        SpecError: there is no such query.
        RefusedError: nothing is published there, or a file is not what the manifest says.

    Example:
        `estimates("releases/wards/public").to_pandas()`.
    """
    release = published(_path(spec))
    try:
        return numbers(release, None if queries is None else [*queries])
    except SpecError as error:
        raise _of_argument(error) from None


def answer(
    spec: str | Path | Spec,
    *,
    where: str | None = None,
    query: str | None = None,
    kind: str | None = None,
    width: timedelta | None = None,
    window: datetime | str | None = None,
    minus: datetime | str | None = None,
) -> pa.Table:
    """Any further sum over published cells, with its interval; from the public side alone, so it costs no privacy.

    Args:
        spec: what `load` gives, or the path of one, or the public folder of a release.
        where: which cells, a condition on the query's keys; None: all.
        query: of a release with several.
        kind: None: levels, or what alone is published.
        width: of sliding windows, if there are several widths.
        window: the end of the one window that is asked for; None: all.
        minus: less the sum of the window that ends then.

    Returns:
        columns `window_start`, `window_end`, `value`, `stddev`, `ci_low`, `ci_high`.

    Raises:
        SpecError: the condition cuts a cell, or there is no such query, kind or window.

    Example:
        `answer("wards.yaml", where="ward in ('medicine', 'surgery')", query="beds")`.
    """
    release = published(_path(spec))
    try:
        return asked_of(
            release,
            query=query,
            kind=kind,
            width=None if width is None else width // MICROSECOND,
            where=where,
            window=moment_of("window", window),
            minus=moment_of("minus", minus),
        )[2]
    except SpecError as error:
        raise _of_argument(error) from None


def _path(spec: str | Path | Spec) -> str:
    """
    Raises:
        SpecError: the file of a spec that was read before says something else now.
    """
    if not isinstance(spec, Spec):
        return str(spec)
    if load(spec.path) != spec:
        raise SpecError(f"{spec.path}: has changed since it was read; load it again")
    return str(spec.path)


def _of_argument(error: SpecError) -> SpecError:
    """As the command line names its flag, `--query`, the function names its argument."""
    return SpecError(str(error).removeprefix("--"))
