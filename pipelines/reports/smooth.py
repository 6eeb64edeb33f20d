"""`slackwater smooth`: published counts and sums with better guesses beside them, made from what is published alone.

It reads the public folder of a release and nothing else, so anyone can do it who has that folder, and it costs no
privacy. Rows of windows that are published stay as they are when later ones are.
"""

import argparse
import hashlib
import json
import re
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.json

from pipelines.epochs.flags import refuse_any
from pipelines.epochs.results import Result
from pipelines.spec.load import Spec, load
from pipelines.spec.paths import within
from pipelines.spec.times import moment_text
from pipelines.store.attempt import own_name
from pipelines.store.folder import Folder, folder_at
from pipelines.store.store import MANIFEST, PLAN, SPEC
from privacy.exact import Members
from privacy.planning.document import plan_from_json
from privacy.planning.plan import Plan
from transforms.aggregation.queries import Query
from transforms.common.cloud import refuse_unreachable
from transforms.common.errors import RefusedError, SpecError
from transforms.common.published_files import read_published
from transforms.common.sinks import OUTPUT_FORMATS, write_table
from transforms.release.published_tables import TIME, key_types
from transforms.release.release import ESTIMATES
from transforms.release.smoothed_tables import smoothed_table, why_not

_FORMATS = {f".{name}": name for name in OUTPUT_FORMATS}
_NUMBERS = ("value", "stddev", "ci_low", "ci_high")


def smooth(arguments: argparse.Namespace, flags: list[str]) -> Result:
    refuse_any(flags, "smooth")
    public, output = arguments.public, arguments.output
    format_ = _FORMATS.get(Path(output).suffix)
    if format_ is None:
        raise SpecError(f"-o {output}: the name must end in {', '.join(_FORMATS)}")
    if within(output, public):
        raise SpecError(f"-o {output}: lies in the public folder, which holds what is published and nothing else")
    refuse_unreachable([public, output])
    release = _Public(public)
    tables, left_out = [], []
    for query in _asked(release.spec, arguments.query):
        reasons = {series: why_not(query, series, release.plan) for series in query.publish}
        left_out += [
            {"query": query.name, "kind": series.kind, "why": why} for series, why in reasons.items() if why is not None
        ]
        wanted = [series for series, why in reasons.items() if why is None]
        if wanted:
            estimates = release.estimates(query)
            start = release.spec.schedule.start
            tables += [smoothed_table(estimates, query, series, release.plan, start=start) for series in wanted]
    if not tables:
        raise SpecError(f"{public}: nothing to smooth: {left_out[0]['query']}: {left_out[0]['why']}")
    smoothed = pa.concat_tables(tables)
    write_table(smoothed, output, format_=format_)
    document = {
        "release": release.spec.release,
        "until": release.until,
        "file": output,
        "rows": smoothed.num_rows,
        "left_out": left_out,
    }
    return document, _text(document)


def _text(document: Mapping[str, Any]) -> str:
    lines = [
        f"{document['release']}: {document['rows']:,} numbers up to {document['until']} in {document['file']}",
        "They are made from what is published, and cost no privacy. ci_low and ci_high hold the truth as often as they "
        "say, whatever the data do; model_low and model_high only if the truth moves as the model says.",
    ]
    lines += [f"  left out: {one['query']}, {one['kind']}: {one['why']}" for one in document["left_out"]]
    return "\n".join(lines)


def _asked(spec: Spec, names: list[str] | None) -> list[Query]:
    """The queries of these names; None: all."""
    known = {query.name: query for query in spec.queries}
    for name in names or ():
        if name not in known:
            raise SpecError(f"--query {name}: no query of the release; it has {', '.join(known)}")
    return [query for name, query in known.items() if names is None or name in names]


class _Public:
    """What a release's public folder holds, each file as its manifest has it.

    Raises:
        RefusedError: a file is missing, or not what the manifest says, or of another version.
    """

    def __init__(self, folder: str) -> None:
        self._folder: Folder = folder_at(folder, private=False)
        try:
            manifest = json.loads(self._read(MANIFEST))
            self._files = {
                name: (digest["sha256"], epoch["attempt"])
                for epoch in manifest["epochs"]
                for name, digest in epoch["files"].items()
            }
            plan, self.until = self._read(PLAN, manifest["plan_sha256"]), moment_text(manifest["until"])
        except (KeyError, TypeError, ValueError):
            raise RefusedError(
                f"{self._folder.path(MANIFEST)}: not a manifest that this version of the program understands; use the "
                "one that made the release"
            ) from None
        self.plan = self._planned(plan)
        self.spec = self._specified()

    def estimates(self, query: Query) -> pa.Table:
        """All published numbers of a query."""
        kind = self.spec.output.format
        types = {
            **dict.fromkeys(("query", "kind"), pa.string()),
            **dict.fromkeys(("window_start", "window_end"), TIME),
            **key_types(self.spec.queries),
            **dict.fromkeys(_NUMBERS, pa.float64()),
        }
        families = "|".join({series.family for series in query.publish})
        own = re.compile(rf"{ESTIMATES}/{re.escape(query.name)}-({families})-\d+\.\w+")
        tables = [
            read_published(self._read(name, sha256), kind, types)
            for name, (sha256, attempt) in self._files.items()
            if own.fullmatch(own_name(name, attempt))
        ]
        return pa.concat_tables(tables)

    def _read(self, name: str, sha256: str | None = None) -> bytes:
        content = self._folder.read(name)
        if content is None:
            raise RefusedError(
                f"{self._folder.path(name)}: missing; give the public folder of a release, with all files"
            )
        if sha256 is not None and hashlib.sha256(content).hexdigest() != sha256:
            raise RefusedError(f"{self._folder.path(name)}: not what the manifest says; get the folder anew")
        return content

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
