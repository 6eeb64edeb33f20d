"""`slackwater plan`: what a release will cost and how far its numbers will be off, before any data is read."""

import argparse
from collections.abc import Sequence
from typing import Any

from pipelines.epochs.flags import refuse_any
from pipelines.epochs.job import job_of, timeline_of
from pipelines.epochs.plans import has_begun, plan_for
from pipelines.epochs.results import Result
from pipelines.reports.accuracy import accuracy, warnings, window_text
from pipelines.reports.plan_explained import explained_text
from pipelines.reports.plan_report import plan_document
from pipelines.reports.plan_text import plan_text
from pipelines.reports.plan_variants import compared
from pipelines.spec.load import Spec, load
from pipelines.spec.times import now
from pipelines.store.commit import Commit
from pipelines.store.store import Store
from privacy.planning.plan import Plan
from transforms.aggregation.queries import Timeline
from transforms.common.cloud import refuse_unreachable
from transforms.common.errors import InputError, SlackwaterError, SpecError
from transforms.sources.files.listing import matching


def plan(arguments: argparse.Namespace, flags: list[str]) -> Result:
    refuse_any(flags, "plan")
    if arguments.compare or arguments.vary or arguments.target:
        return compared(
            arguments.spec, arguments.compare or [], arguments.vary or [], arguments.target, arguments.until
        )
    spec = load(arguments.spec)
    commits = _commits(spec)
    made = plan_for(spec, commits or ())
    ahead = now() if spec.schedule.until is None else spec.schedule.until
    until = ahead if arguments.until is None else arguments.until
    begun = None if commits is None else has_begun(spec, commits)
    timeline = timeline_of(spec, until)
    document = {**whole_document(spec, made, timeline.windows), "begun": begun}
    document["warnings"] += [] if commits else of_first_file(spec, timeline, made)
    lines = [(explained_text if arguments.explain else plan_text)(document)]
    if begun is None:
        lines.append("Whether this release has begun cannot be seen from here; one that has goes on with its own plan.")
    elif begun:
        lines.append(
            "This release has begun, and this is the plan that it goes on with, whatever would be planned now."
        )
    elif commits:
        lines.append("The output folders hold a release of another spec, so `run` refuses this one.")
    return document, "\n".join(lines)


def whole_document(spec: Spec, plan: Plan, windows: int) -> dict[str, Any]:
    """`plan_document` with how far off each number will be, and what is doubtful."""
    document = plan_document(spec, plan, windows)
    found = [accuracy(query, plan, place, windows) for place, query in enumerate(spec.queries)]
    for query, of_query in zip(document["queries"], found, strict=True):
        query["accuracy"] = of_query
    return {**document, "over": window_text(spec, windows), "warnings": [*warnings(spec, plan, windows, found)]}


def of_first_file(spec: Spec, timeline: Timeline, plan: Plan) -> list[str]:
    """Why a run would refuse the local files that are there, by the columns and the form of the first one.

    No value is shown, and none of the numbers of a plan depends on it.
    """
    source = spec.changelog.source
    if source.every is not None or any("://" in path for path in source.paths) or not matching(source.paths):
        return []
    try:
        job_of(spec, timeline, plan=plan)
    except (InputError, SpecError) as error:
        return str(error).splitlines()
    return []


def _commits(spec: Spec) -> Sequence[Commit] | None:
    """The epochs that are committed; None where this account cannot see them."""
    try:
        refuse_unreachable([spec.output.private])
    except SlackwaterError:
        return None
    try:
        return Store(spec.output.public, spec.output.private).commits()
    except PermissionError:
        return None
