"""The public folder of a release, from which everything for readers is computed."""

import math
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from pipelines.common.arguments import SpecLike, path_of
from pipelines.common.errors import ArgumentError
from pipelines.epochs.plans import SAME, is_for
from pipelines.spec.load import Spec, load
from pipelines.spec.public import PUBLIC as WITHHELD_FOLDER
from pipelines.spec.times import moment_text
from pipelines.store.attempt import own_name
from pipelines.store.commit import PLAN, RELEASE, SPEC, Commit
from pipelines.store.folder import Folder, folder_at, is_folder, read_public, read_public_table
from pipelines.store.kept_plan import read_plan
from pipelines.store.manifest import records_of
from pipelines.store.shown import MANIFEST
from privacy.accounting.accounting import Budget
from privacy.json_values import parsed
from privacy.planning.plan import Plan
from privacy.series import Series
from transforms.aggregation.queries import Query
from transforms.common.cloud import refuse_unreachable
from transforms.common.errors import InputError, RefusedError, SpecError
from transforms.common.windows import Windows
from transforms.release.discovered_tables import found_rows
from transforms.release.marginal_tables import Marginal, by_marginal, marginal_kind
from transforms.release.published_columns import TIME, key_types, types_of_some
from transforms.release.quantile_tables import QUANTILE, by_quantile, quantile_kind
from transforms.release.range_tables import by_range, range_kind
from transforms.release.release import ESTIMATES
from transforms.release.rest_tables import LEVEL, rest_rows, total_of
from transforms.release.rows_in_order import in_order, of_series, placed

T = TypeVar("T")

_OF = "a release"
_NUMBERS = ("value", "stddev", "ci_low", "ci_high")


class Published:
    """The public folder of a release, with each file as its manifest states it.

    Attributes:
        folder: Path of the folder.
        spec: The published spec, with the `sha256` of the whole spec.
        epochs: Commits as the manifest has them, without their private members.
        until: End of the last published window.
        bounds: Bounds of the published windows.

    Raises:
        RefusedError: A file is missing, not what the manifest says, or of another version.
        SpecError: The folder holds sanitised records.
    """

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self._folder: Folder = folder_at(folder, private=False)
        self._kept: tuple[object, pa.Table] | None = None  # the last rows that were read, with their query and kinds
        commits = self._commits()
        self._files = _files_of(commits)
        first, last = commits[0], commits[-1]
        self.plan = self._planned(self._read(PLAN, first.plan_sha256))
        self.spec = replace(self._specified(), sha256=first.spec_sha256)
        self.epochs = commits
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

    def local(self, moment: int) -> int:
        """Return the local time of the schedule's zone at a moment, in microseconds as if it were UTC."""
        return self.spec.schedule.local(moment)

    def numbers(self, query: Query, only: Collection[str] | None = None) -> Iterator[tuple[Series, pa.Table]]:
        """Yield each series of a query with its rows, window after window, each with the cells in the spec's order.

        Keys that were found have rows from their window of discovery on, in the order of their texts. For other
        queries, files are read one by one, and only numbers are kept: texts and times follow from the order.

        Args:
            query: The query.
            only: Columns that are needed; None: all.
        """
        if query.discovers:
            estimates = self.estimates(query)
            for series in query.publish:
                yield series, found_rows(estimates, query, series, self.bounds)
            return
        found = self._over_files(
            query, lambda tables: placed(tables, query, query.publish, windows=self.bounds, only=only)
        )
        for series, rows in zip(query.publish, found, strict=True):
            yield series, in_order(rows, query, series, self.bounds)

    def rest(self, query: Query) -> pa.Table | None:
        """Return the rows of a total over all keys without the found ones; None if the release has no such total."""
        whole = total_of(query, self.spec.queries)
        if whole is None:
            return None
        found, total = (next(rows for one, rows in self.numbers(of) if one == LEVEL) for of in (query, whole))
        return rest_rows(found, total, (query, whole), self.plan, self.bounds)

    def quantiles(self, query: Query) -> Iterator[tuple[Series, pa.Table]]:
        """Yield each series of a query with the rows of its quantiles, as `numbers` does for cells.

        The cells are those of `transforms.release.quantile_tables.by_quantile`, with quantiles as text.
        """
        if not query.quantiles:
            return
        estimates = _of_keys(self.estimates(query, map(quantile_kind, query.publish)), query, dict(query.listed))
        place, names = estimates.column_names.index(QUANTILE), pa.array(map(str, query.quantiles))
        at = pc.index_in(estimates.column(QUANTILE), value_set=pa.array(query.quantiles))
        estimates = estimates.set_column(place, QUANTILE, names.take(at.combine_chunks()))
        for series in query.publish:
            yield series, self._of_kind(estimates, quantile_kind(series), series, by_quantile(query))

    def ranges(self, query: Query) -> Iterator[tuple[Series, pa.Table]]:
        """Yield each series of a query with the rows of its ranges, as `numbers` does for cells.

        The cells are those of `transforms.release.range_tables.by_range`: of two ordered keys with a column for both.
        """
        if not query.ranges:
            return
        estimates = _of_keys(self.estimates(query, map(range_kind, query.publish)), query, dict(query.listed))
        ranged = by_range(query)
        if len(query.ordered) > 1:
            keys = [estimates.column(name) for name, _ in query.ordered]
            estimates = estimates.append_column(ranged.by[0][0], pc.binary_join_element_wise(*keys, ", "))
        for series in query.publish:
            yield series, self._of_kind(estimates, range_kind(series), series, ranged)

    def marginals(self, query: Query, marginal: Marginal) -> Iterator[tuple[Series, pa.Table]]:
        """Yield each series of a query with the rows of a marginal, as `numbers` does for cells.

        The cells are those of `transforms.release.marginal_tables.by_marginal`.
        """
        rows = by_marginal(query, marginal)
        estimates = _of_keys(self.estimates(query, map(marginal_kind, query.publish)), rows, dict(rows.by))
        for series in query.publish:
            yield series, self._of_kind(estimates, marginal_kind(series), series, rows)

    def _of_kind(self, estimates: pa.Table, kind: str, series: Series, query: Query) -> pa.Table:
        """Return the rows of another kind as rows of a series of a query with other cells."""
        rows = estimates.filter(pc.equal(estimates.column("kind"), kind))
        return of_series(rows.set_column(1, "kind", pa.repeat(series.kind, rows.num_rows)), query, series, self.bounds)

    def estimates(self, query: Query, kinds: Iterable[str] | None = None) -> pa.Table:
        """Return the published numbers of a query; with `sampled` if it is adaptive, with `quantile` if it has any.

        Args:
            query: The query.
            kinds: Kinds of numbers; None: all.
        """
        asked = None if kinds is None else tuple(kinds)
        if asked is not None and self._kept is not None and self._kept[0] == (query.name, asked):
            return self._kept[1]
        wanted = None if asked is None else pa.array(asked)

        def joined(tables: Iterator[pa.Table]) -> pa.Table:
            if wanted is not None:
                tables = (table.filter(pc.is_in(table.column("kind"), value_set=wanted)) for table in tables)
            return pa.concat_tables(tables)

        table = self._over_files(query, joined)
        if asked is not None:
            self._kept = (query.name, asked), table
        return table

    def _over_files(self, query: Query, use: Callable[[Iterator[pa.Table]], T]) -> T:
        """Return what `use` makes of the tables of a query's files; again of others if a compaction replaces them."""
        kind = self.spec.output.format
        types = {
            **dict.fromkeys(("query", "kind"), pa.string()),
            **dict.fromkeys(("window_start", "window_end"), TIME),
            **key_types(self.spec.queries),
            **dict.fromkeys(_NUMBERS, pa.float64()),
            **types_of_some([query]),
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
                return use(
                    self._due(read_public_table(self._folder, *name, kind, types, of=_OF), query) for name in names
                )
            except RefusedError:
                if not self._lists_other_files():
                    raise

    def _due(self, found: pa.Table, query: Query) -> pa.Table:
        """Return the rows of published windows.

        Raises:
            RefusedError: A row has no number.
        """
        early = pc.less_equal(found.column("window_end"), pa.scalar(self._last, TIME))
        found = found if pc.all(early, min_count=0).as_py() else found.filter(early)
        value = found.column("value")
        known = pc.is_finite(value.fill_null(math.nan))
        if query.quantiles:  # without a value if the noisy counts add up to nothing
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
            commits = records_of(RELEASE, manifest)
            for moment in (commits[0].start, commits[-1].until):
                moment_text(moment)
        except (ValueError, OverflowError):
            raise RefusedError(
                f"{self._folder.path(MANIFEST)}: not a manifest that this version of the program understands; use the "
                "one that made the release"
            ) from None
        return commits

    def _lists_other_files(self) -> bool:
        """Read the manifest again, and return whether a compaction has replaced the files that it listed."""
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
    """Return the digest of each file, and its name in the attempt, by its public name."""
    return {
        name: (digest.sha256, own_name(name, commit.attempt))
        for commit in commits
        for name, digest in commit.files.items()
    }


def _claims(loss: Budget, plan: Plan) -> bool:
    """Return whether a manifest claims the privacy that a plan has."""
    pairs = ((loss.epsilon, plan.budget.epsilon), (loss.delta, plan.budget.delta))
    return all(math.isclose(stated, planned, rel_tol=SAME) for stated, planned in pairs)


@contextmanager
def naming(folder: str) -> Iterator[None]:
    """Let errors name the public folder, since its files may contradict each other in ways that are not checked before.

    Raises:
        RefusedError: The computation in the context fails.
    """
    try:
        yield
    except InputError as error:
        raise RefusedError(f"{folder}: {error}; get the folder again") from None
    except (ArithmeticError, LookupError, MemoryError, RecursionError, TypeError, ValueError) as error:
        why = f"its tables and plan do not fit together ({type(error).__name__})"
        raise RefusedError(f"{folder}: {why}; get the folder again") from error


def _of_keys(estimates: pa.Table, query: Query, names: Collection[str]) -> pa.Table:
    """Return the rows whose keys of these names have the values that a query has: those of one table."""
    for name, key in query.known:
        if name in names:
            values = key.published(0, len(key), estimates.column(name).type)
            estimates = estimates.filter(pc.is_in(estimates.column(name), value_set=values))
    return estimates


def published(spec: SpecLike) -> Published:
    """Return the public side of a release.

    Args:
        spec: The path of a spec, what `load` returns, or the path of the public folder itself.
    """
    path = path_of(spec)
    folder = path
    if not is_folder(path):
        folder = load(path).output.public
        if folder == WITHHELD_FOLDER:
            raise SpecError(f"{path}: a published spec does not say where its release is; give the public folder")
    refuse_unreachable([folder])
    if folder != path and folder_at(folder, private=False).read(MANIFEST) is None:
        where = "" if "://" in folder or Path(folder).is_absolute() else ", if this is the folder where it ran"
        raise RefusedError(
            f"{path}: nothing is published yet in {folder}; `slackwater run {path}` publishes due windows{where}"
        )
    return Published(folder)


def asked(spec: Spec, names: Sequence[str] | None) -> list[Query]:
    """Return the queries of these names; None: all."""
    known = {query.name: query for query in spec.queries}
    for name in names or ():
        if name not in known:
            raise ArgumentError("query", f"no query of the release; it has {', '.join(known)}", name)
    return [query for name, query in known.items() if names is None or name in names]
