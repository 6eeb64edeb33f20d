"""The privacy label of a report: the twenty points of a deployment's disclosure (`pipelines.disclosure.facts`)."""

from dataclasses import replace
from typing import Any

from pipelines.disclosure.facts import FACTS, Subject, disclosure
from pipelines.ledger.account import what_remains
from pipelines.published.release import Published
from pipelines.spec.load import load
from pipelines.store.commit import disclosed
from pipelines.store.folder import is_folder
from privacy.upward import shown


def facts_of(release: Published, path: str, account: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the heading and the text of each point.

    Args:
        release: The public side of the release.
        path: Path that the user gave: of the spec, whose section `about` then counts as it is now, or of the public
            folder, whose manifest then has the texts.
        account: Ledger of the release (`pipelines.ledger.account.ledger_document`).
    """
    last, spec = release.epochs[-1], release.spec
    found = {} if not is_folder(path) else dict(disclosed(release.epochs))
    if not found:
        if not is_folder(path):
            own = load(path)
            spec = replace(spec, about=own.about, output=replace(spec.output, witness=own.output.witness))
        found = disclosure(Subject(spec=spec, plan=release.plan, program=last.program, sampler=last.sampler))
    spent = account["spent"]
    found["spent"] = (
        f"epsilon = {shown(spent['epsilon'])}, delta = {shown(spent['delta'])} so far. "
        f"{what_remains(account, release.plan)}"
    )
    return [(fact.heading, found[name]) for name, fact in FACTS.items() if name in found]
