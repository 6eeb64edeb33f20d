"""What a release's public folder holds: all that readers have, and all that reports for them are made from."""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from datetime import UTC, datetime, timedelta, tzinfo
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pipelines.epochs.plans import SAME, is_for
from pipelines.spec.calendar import zone_of
from pipelines.spec.document import document_of
from pipelines.spec.load import Spec, load
from pipelines.spec.public import PUBLIC as WITHHELD_FOLDER
from pipelines.spec.times import MICROSECOND, moment_text, parse_time
from pipelines.store.attempt import own_name
from pipelines.store.commit import Commit
from pipelines.store.folder import Folder, folder_at, is_folder, read_public, read_public_table
from pipelines.store.kept_plan import read_plan
from pipelines.store.manifest import commits_of
from pipelines.store.store import MANIFEST, PLAN, SPEC
from privacy.exact import parsed
from privacy.planning.plan import Plan
from privacy.series import Series
from transforms.aggregation.queries import Query
from transforms.common.cloud import refuse_unreachable
from transforms.common.errors import InputError, RefusedError, SpecError
from transforms.common.windows import Windows
from transforms.release.published_columns import GROUPED, SAMPLED, SPREAD_OVER, TIME, key_types
from transforms.release.quantile_tables import QUANTILE, by_quantile, quantile_kind
from transforms.release.range_tables import by_range, range_kind
from transforms.release.release import ESTIMATES
from transforms.release.smoothed_tables import of_series

_OF = "a release"
_NUMBERS = ("value", "stddev", "ci_low", "ci_high")


class Published:
    """What a release's public folder holds, each file as its manifest has it.

    Attributes:
        folder: where it is.
        spec: as it is published, but for `sha256`, which is that of the whole one.
        epochs: as the manifest has them, each with what the ledger asks of a commit.
        until: the end of the last window that is published.
        bounds: where the windows begin and end that are published.

    Raises:
        RefusedError: a file is missing, or not what the manifest says, or of another version.
        SpecError: it holds sanitised records.
    """

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self._folder: Folder = folder_at(folder, private=False)
        commits = self._commits()
        self._files = _files_of(commits)
        first, last = commits[0], commits[-1]
        self.plan = self._planned(self._read(PLAN, first.plan_sha256))
        self.spec = replace(self._specified(), sha256=first.spec_sha256)
        self.epochs = [asdict(commit) for commit in commits]
        self.windows, self._last, self.until = last.windows, last.until, moment_text(last.until)
        ends = tuple(end for commit in commits for end in commit.ends)
        self.bounds = Windows(start=first.start, every=self.spec.schedule.every, ends=ends or None)
        if (
            not is_for(self.plan, self.spec)
            or not _claims(first.loss, self.plan)
            or any(self.bounds.end(one.windows) != one.until for one in commits)
        ):
            raise RefusedError(
                f"{self._folder.path(PLAN)}: of other queries, windows or privacy than {SPEC} and {MANIFEST} say; get "
                "the folder again"
            )
        calendar = self.spec.schedule.calendar
        if calendar is not None:
            self._zone: tzinfo = zone_of(calendar.zone)
        else:
            start = parse_time(str(document_of(SPEC, self.spec.text).content["schedule"]["start"]))
            self._zone = start.tzinfo or UTC

    def local(self, moment: int) -> int:
        """What the clocks of the schedule's zone show at a moment, in microseconds as if it were UTC."""
        shown = (datetime.fromtimestamp(0, UTC) + moment * MICROSECOND).astimezone(self._zone)
        return moment + (shown.utcoffset() or timedelta(0)) // MICROSECOND

    def numbers(self, query: Query) -> Iterator[tuple[Series, pa.Table]]:
        """Each series of a query with its rows, window after window and in each the cells in the spec's order."""
        estimates = self.estimates(query)
        for series in query.publish:
            yield series, of_series(estimates, query, series, self.bounds)

    def quantiles(self, query: Query) -> Iterator[tuple[Series, pa.Table]]:
        """Each series of a query with the rows of its quantiles, as `numbers` has those of cells; none without any.

        The cells are those of `transforms.release.quantile_tables.by_quantile`, with quantiles as text.
        """
        if not query.quantiles:
            return
        estimates = self.estimates(query)
        place, names = estimates.column_names.index(QUANTILE), pa.array(map(str, query.quantiles))
        at = pc.index_in(estimates.column(QUANTILE), value_set=pa.array(query.quantiles))
        estimates = estimates.set_column(place, QUANTILE, names.take(at.combine_chunks()))
        for series in query.publish:
            yield series, self._of_kind(estimates, quantile_kind(series), series, by_quantile(query))

    def ranges(self, query: Query) -> Iterator[tuple[Series, pa.Table]]:
        """Each series of a query with the rows of its ranges, as `numbers` has those of cells; none without ranges.

        The cells are those of `transforms.release.range_tables.by_range`: of two ordered keys with a column for both.
        """
        if not query.ranges:
            return
        estimates, ranged = self.estimates(query), by_range(query)
        if len(query.ordered) > 1:
            keys = [estimates.column(name) for name, _ in query.ordered]
            estimates = estimates.append_column(ranged.by[0][0], pc.binary_join_element_wise(*keys, ", "))
        for series in query.publish:
            yield series, self._of_kind(estimates, range_kind(series), series, ranged)

    def _of_kind(self, estimates: pa.Table, kind: str, series: Series, query: Query) -> pa.Table:
        """The rows of another kind as those of a series of a query with other cells."""
        rows = estimates.filter(pc.equal(estimates.column("kind"), kind))
        return of_series(rows.set_column(1, "kind", pa.repeat(series.kind, rows.num_rows)), query, series, self.bounds)

    def estimates(self, query: Query) -> pa.Table:
        """All published numbers of a query; with `sampled` if the data decide when, with `quantile` if it has any."""
        kind = self.spec.output.format
        types = {
            **dict.fromkeys(("query", "kind"), pa.string()),
            **dict.fromkeys(("window_start", "window_end"), TIME),
            **key_types(self.spec.queries),
            **dict.fromkeys(_NUMBERS, pa.float64()),
            **({} if query.adaptive is None else {SAMPLED: pa.bool_()}),
            **({} if query.adaptive is None or query.adaptive.policy != "pegasus" else {GROUPED: pa.int64()}),
            **({} if query.over.name != "kdtree" else {SPREAD_OVER: pa.int64()}),
            **({QUANTILE: pa.float64()} if query.quantiles else {}),
        }
        families = "|".join({series.family for series in query.publish})
        own = re.compile(rf"{ESTIMATES}/{re.escape(query.name)}-({families})-\d+\.\w+")
        while True:
            names = [(name, sha256) for name, (sha256, in_attempt) in self._files.items() if own.fullmatch(in_attempt)]
            if not names:
                raise RefusedError(
                    f"{self._folder.path(MANIFEST)}: names no numbers of query {query.name}; get the folder again"
                )
            try:
                tables = [read_public_table(self._folder, *name, kind, types, of=_OF) for name in names]
                break
            except RefusedError:
                if not self._lists_other_files():
                    raise
        found = pa.concat_tables(tables)
        found = found.filter(pc.less_equal(found.column("window_end"), pa.scalar(self._last, TIME)))
        value = found.column("value")
        known = pc.is_finite(value.fill_null(math.nan))
        if query.quantiles:  # which there are none of where noisy counts add up to nothing
            known = pc.or_(known, pc.and_(pc.is_null(value), pc.is_valid(found.column(QUANTILE))))
        if not pc.all(known, min_count=0).as_py():
            raise RefusedError(f"{self.folder}: query {query.name} has a row without a number; get the folder again")
        return found

    def _commits(self) -> tuple[Commit, ...]:
        content = self._read(MANIFEST)
        try:
            manifest = parsed(content)
            if isinstance(manifest, dict) and "records" in manifest:
                raise SpecError(
                    f"{self.folder}: sanitised records; the commands for them are slackwater show and report"
                )
            return commits_of(manifest)
        except ValueError:
            raise RefusedError(
                f"{self._folder.path(MANIFEST)}: not a manifest that this version of the program understands; use the "
                "one that made the release"
            ) from None

    def _lists_other_files(self) -> bool:
        """Read the manifest again; whether a compaction has replaced the files that it listed."""
        before, self._files = self._files, _files_of(self._commits())
        return self._files != before

    def _read(self, name: str, sha256: str | None = None) -> bytes:
        return read_public(self._folder, name, sha256, of=_OF)

    def _planned(self, content: bytes) -> Plan:
        try:
            return read_plan(content).plan
        except (ArithmeticError, ValueError) as error:
            raise RefusedError(
                f"{self._folder.path(PLAN)}: {error}; use the version of the program that made the release"
            ) from None

    def _specified(self) -> Spec:
        with TemporaryDirectory() as folder:
            path = Path(folder, SPEC)
            path.write_bytes(self._read(SPEC))
            return load(path)


def _files_of(commits: Sequence[Commit]) -> dict[str, tuple[str, str]]:
    """Digest of each file, and its name in the attempt, by its public name."""
    return {
        name: (digest.sha256, own_name(name, commit.attempt))
        for commit in commits
        for name, digest in commit.files.items()
    }


def _claims(loss: Mapping[str, Any], plan: Plan) -> bool:
    """Whether a manifest claims the privacy that a plan has."""
    of_plan = {"epsilon": plan.budget.epsilon, "delta": plan.budget.delta}
    return loss.keys() == of_plan.keys() and all(
        type(loss[name]) in (int, float) and math.isclose(loss[name], value, rel_tol=SAME)
        for name, value in of_plan.items()
    )


@contextmanager
def naming(folder: str) -> Iterator[None]:
    """Let errors name the public folder: what it holds may fit together in no way that could be checked before.

    Raises:
        RefusedError: what is computed here fails.
    """
    try:
        yield
    except InputError as error:
        raise RefusedError(f"{folder}: {error}; get the folder again") from None
    except (ArithmeticError, LookupError, MemoryError, RecursionError, TypeError, ValueError) as error:
        why = f"its tables and plan do not fit together ({type(error).__name__})"
        raise RefusedError(f"{folder}: {why}; get the folder again") from error


def published(path: str) -> Published:
    """The public side of a release.

    Args:
        path: of its spec, or of the public folder itself.
    """
    folder = path
    if not is_folder(path):
        folder = load(path).output.public
        if folder == WITHHELD_FOLDER:
            raise SpecError(f"{path}: a published spec does not say where its release is; give the public folder")
    refuse_unreachable([folder])
    if folder != path and folder_at(folder, private=False).read(MANIFEST) is None:
        where = "" if "://" in folder or Path(folder).is_absolute() else ", if this is the folder where it ran"
        raise RefusedError(
            f"{path}: nothing is published yet in {folder}; `slackwater run {path}` publishes what is due{where}"
        )
    return Published(folder)


def asked(spec: Spec, names: list[str] | None) -> list[Query]:
    """The queries of these names; None: all."""
    known = {query.name: query for query in spec.queries}
    for name in names or ():
        if name not in known:
            raise SpecError(f"--query {name}: no query of the release; it has {', '.join(known)}")
    return [query for name, query in known.items() if names is None or name in names]
