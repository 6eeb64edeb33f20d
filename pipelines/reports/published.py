"""What a release's public folder holds: all that readers have, and all that reports for them are made from."""

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta, tzinfo
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pipelines.spec.calendar import zone_of
from pipelines.spec.document import document_of
from pipelines.spec.load import Spec, load
from pipelines.spec.public import PUBLIC as WITHHELD_FOLDER
from pipelines.spec.times import MICROSECOND, moment_text, parse_time
from pipelines.store.attempt import own_name
from pipelines.store.folder import Folder, folder_at, read_public
from pipelines.store.store import MANIFEST, PLAN, SPEC
from privacy.exact import Members
from privacy.planning.document import plan_from_json
from privacy.planning.plan import Plan
from privacy.series import Series
from transforms.aggregation.queries import Query
from transforms.common.cloud import refuse_unreachable
from transforms.common.errors import RefusedError, SpecError
from transforms.common.published_files import read_published
from transforms.common.windows import Windows
from transforms.release.published_columns import GROUPED, SAMPLED, SPREAD_OVER, TIME, key_types
from transforms.release.quantile_tables import QUANTILE
from transforms.release.range_tables import by_range, range_kind
from transforms.release.release import ESTIMATES
from transforms.release.smoothed_tables import of_series

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
        try:
            manifest = json.loads(self._read(MANIFEST))
            if "records" in manifest:
                raise SpecError(f"{folder}: sanitised records; the commands for them are slackwater show and report")
            self._files = {
                name: (digest["sha256"], epoch["attempt"])
                for epoch in manifest["epochs"]
                for name, digest in epoch["files"].items()
            }
            plan, self.until = self._read(PLAN, manifest["plan_sha256"]), moment_text(manifest["until"])
            of_all = {name: manifest[name] for name in ("spec_sha256", "loss")}
            self.epochs: list[dict[str, Any]] = [{**epoch, **of_all} for epoch in manifest["epochs"]]
            self.windows: int = manifest["windows"]
            first, ends = manifest["start"], [end for epoch in self.epochs for end in epoch.get("ends", ())]
        except (AttributeError, KeyError, OverflowError, TypeError, ValueError):
            raise RefusedError(
                f"{self._folder.path(MANIFEST)}: not a manifest that this version of the program understands; use the "
                "one that made the release"
            ) from None
        self.plan = self._planned(plan)
        self.spec = replace(self._specified(), sha256=of_all["spec_sha256"])
        if [query.name for query in self.spec.queries] != [demand.name for demand in self.plan.demands]:
            raise RefusedError(f"{self._folder.path(PLAN)}: of other queries than {SPEC} has; get the folder anew")
        self.bounds = Windows(start=first, every=self.plan.window, ends=tuple(ends) or None)
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

    def quantiles(self, query: Query) -> pa.Table:
        """The rows of a query's quantiles, window after window; none if it publishes none."""
        estimates = self.estimates(query)
        if not query.quantiles:
            return estimates.slice(0, 0)
        found = estimates.filter(pc.is_valid(estimates.column(QUANTILE)))
        return found.sort_by([(name, "ascending") for name in ("kind", "window_end", "window_start", QUANTILE)])

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
            rows = estimates.filter(pc.equal(estimates.column("kind"), range_kind(series)))
            rows = rows.set_column(1, "kind", pa.array([series.kind] * rows.num_rows, pa.string()))
            yield series, of_series(rows, ranged, series, self.bounds)

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
        tables = [
            read_published(self._read(name, sha256), kind, types)
            for name, (sha256, attempt) in self._files.items()
            if own.fullmatch(own_name(name, attempt))
        ]
        if not tables:
            raise RefusedError(
                f"{self._folder.path(MANIFEST)}: names no numbers of query {query.name}; get the folder anew"
            )
        return pa.concat_tables(tables)

    def _read(self, name: str, sha256: str | None = None) -> bytes:
        return read_public(self._folder, name, sha256, of="a release")

    def _planned(self, content: bytes) -> Plan:
        try:
            members = Members(json.loads(content))
            members.text("release")
            members.text("spec_sha256")
            return plan_from_json(members.rest())
        except (ValueError, RecursionError) as error:
            raise RefusedError(
                f"{self._folder.path(PLAN)}: {error}; use the version of the program that made the release"
            ) from None

    def _specified(self) -> Spec:
        with TemporaryDirectory() as folder:
            path = Path(folder, SPEC)
            path.write_bytes(self._read(SPEC))
            return load(path)


def published(path: str) -> Published:
    """The public side of a release.

    Args:
        path: of its spec, or of the public folder itself.
    """
    folder = path
    if "://" not in path and not Path(path).is_dir():
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
