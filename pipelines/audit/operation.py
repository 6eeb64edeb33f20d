"""`slackwater audit`: attack the release of a spec with synthetic data, or check a public folder from outside."""

import json
import os
import resource
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from pipelines.audit.attack import RESULT
from pipelines.audit.audited import Audited, audit_page
from pipelines.audit.findings import LayerResult
from pipelines.audit.outsider import check_public
from pipelines.common.arguments import SpecLike, refuse_ending, refuse_inside, spec_of
from pipelines.common.errors import ArgumentError
from pipelines.published.others import of_other_kind
from pipelines.spec.load import Spec
from transforms.common.errors import SlackwaterError
from transforms.common.sinks import write_text

ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}


class AuditError(SlackwaterError):
    """An audit could not be carried out."""


def audit(
    spec: SpecLike | None = None,
    *,
    public: str | Path | None = None,
    empty: str | None = None,
    witness: str | Path | None = None,
    quick: bool = False,
    full: bool = False,
    html: str | Path | None = None,
) -> Audited:
    """Attack the release of a spec with synthetic data, or check the public folder of a release from outside.

    An audit reads no data of the spec, publishes nothing and costs no privacy. It can refute a claim, and cannot prove
    it.

    Args:
        spec: The path of a spec of a release or of a survey, or what `load` returns.
        public: A public folder to check instead, from its files alone.
        empty: For a public folder, a condition on its key columns: cells that are known to be empty, whose numbers are
            noise alone.
        witness: For a public folder, the witness of its release (`output.witness` of the spec), or a copy of it: a
            file, or a prefix on `gs://`.
        quick: Take at most a minute of processor time.
        full: Take half an hour.
        html: Also write the result as a page to this file.

    Raises:
        SpecError: The spec or an argument is wrong.
        RefusedError: The public folder is damaged.

    Example:
        `audit("wards.yaml", quick=True).passed` is true if no layer contradicts the claim.
    """
    page = None if html is None else str(html)
    refuse_ending("html", page, (".html",))
    if (spec is None) == (public is None):
        raise ArgumentError("public", "give either a spec or --public with a public folder")
    if quick and full:
        raise ArgumentError("full", "does not go with --quick; choose one")
    if public is not None:
        if quick or full:
            raise ArgumentError(
                "full" if full else "quick", "is for the audit of a spec; a public folder is checked whole"
            )
        refuse_inside("html", page, str(public))
        found = check_public(str(public), empty, None if witness is None else str(witness))
    else:
        if witness is not None:
            raise ArgumentError("witness", "is for --public: the audit of a spec makes its own")
        if empty is not None:
            raise ArgumentError("empty", "is for --public: a spec is audited with synthetic data")
        assert spec is not None
        effort = "quick" if quick else "full" if full else "usual"
        other = None if isinstance(spec, Spec) else of_other_kind("audit", str(spec))
        found = _attacked(_audited_spec(spec, page), effort) if other is None else other(str(spec), effort)
    if page is not None:
        found = replace(found, page=page)
        write_text(page, audit_page(found))
    return found


def _audited_spec(spec: SpecLike, page: str | None) -> str:
    """Return the path of a spec that can be audited."""
    given = spec_of(spec)
    refuse_inside("html", page, given.output.public)
    return str(given.path)


def _attacked(path: str, effort: str, layers: Sequence[str] = ()) -> Audited:
    """Attack a spec in a separate process, in which noise may be replaced by zeros."""
    with TemporaryDirectory(prefix="slackwater-audit-") as folder:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        command = [sys.executable, "-m", "pipelines.audit.attack", path, folder, effort, *layers]
        ran = subprocess.run(command, env={**os.environ, **ONE_THREAD}, capture_output=True, text=True, check=False)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        result = Path(folder, RESULT)
        if ran.returncode or not result.exists():
            last = (ran.stderr.strip().splitlines() or [f"exit code {ran.returncode}"])[-1]
            raise AuditError(f"{path}: the audit stopped: {last}")
        document = json.loads(result.read_text(encoding="utf-8"))
    return Audited(
        subject=document["subject"],
        claim=document["claim"],
        epsilon=document["epsilon"],
        delta=document["delta"],
        layers=tuple(map(LayerResult.from_json, document["layers"])),
        seconds=after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
    )
