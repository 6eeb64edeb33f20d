"""What the curator states about a release on its report: its privacy label, title and labels of queries."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from pipelines.disclosure.facts import NOT_STATED, Subject, disclosure, labelled, page_texts
from pipelines.ledger.account import what_remains
from pipelines.pages import html
from pipelines.pages.subject import covered
from pipelines.published.labels import Labels, range_text
from pipelines.published.release import Published
from pipelines.report.parts import ReportPart
from pipelines.spec.about import cell_label_of, is_of_pages
from pipelines.spec.load import load
from pipelines.store.folder import is_folder
from pipelines.store.record import disclosed
from privacy.counted import listed
from privacy.upward import shown
from transforms.aggregation.ordered_key import ABOVE, BELOW
from transforms.aggregation.queries import Query
from transforms.release.range_tables import range_labels

NOT_STATED_BY = NOT_STATED.rstrip(".")
"""Begin of points that the curator has not stated."""


@dataclass(frozen=True, slots=True)
class Stated:
    """Texts about a release by their names (`pipelines.disclosure.facts`).

    Attributes:
        texts: The texts.
        outer: Labels of the cells below and above the edges of ordered keys, which a curator's labels replace.
    """

    texts: Mapping[str, str] = field(default_factory=dict)
    outer: Mapping[str, str] = field(default_factory=dict)

    @property
    def facts(self) -> list[tuple[str, str]]:
        """The heading and the text of each point of the disclosure."""
        return labelled(self.texts)

    @property
    def names(self) -> Labels:
        """The labels of queries, key columns and cells."""
        return Labels({**self.outer, **self.texts})

    def labelled(self, drawn: dict[str, Any]) -> dict[str, Any]:
        """Return the data of a chart with labels in place of the names of keys and cells."""
        keys = drawn["keys"]
        cells = [self.names.cell(keys, cell) if len(cell) == len(keys) else cell for cell in drawn["cells"]]
        found = {**drawn, "keys": [self.names.column(key) for key in keys], "cells": cells}
        return {**found, "picture": self._pictured(drawn["picture"], keys)} if "picture" in drawn else found

    def _pictured(self, picture: dict[str, Any], keys: list[str]) -> dict[str, Any]:
        """Return the data of a kind of chart with labels in place of the names of keys, cells and nodes."""
        found = dict(picture)
        listed = keys
        if "axes" in picture:
            found["axes"] = [
                {
                    **axis,
                    "key": self.names.column(axis["key"]),
                    "labels": [self.names.cell([axis["key"]], [value])[0] for value in axis["labels"]],
                }
                for axis in picture["axes"]
            ]
            listed = keys[: len(keys) - len(picture["axes"])]
        if "levels" in picture:
            key, listed = keys[picture["at"]], [*keys[: picture["at"]], *keys[picture["at"] + 1 :]]
            found["values"] = [self.names.cell([key], [value])[0] for value in picture["values"]]
            found["levels"] = [
                [[*self.names.cell([key], node[:1]), *node[1:]] for node in one] for one in picture["levels"]
            ]
        if "choices" in picture:
            found["choices"] = [self.names.cell(listed, choice) for choice in picture["choices"]]
        return found

    @property
    def for_pages(self) -> tuple[tuple[str, str], ...]:
        """The curator's texts for pages, by their keys, as a spec has them."""
        return tuple((key, text) for key, text in self.texts.items() if is_of_pages(key))

    def introduction(self, when: str = "") -> list[str]:
        """Return the publisher with the contact, the description and the source, as HTML, as far as they are stated.

        Args:
            when: When the numbers were published, with a space before it.
        """
        curator, contact = self.texts.get("curator", ""), self.texts.get("contact", "")
        published = [] if not curator or curator.startswith(NOT_STATED_BY) else [f"Published{when} by {curator}"]
        if contact and not published:
            published = [f"Contact: {contact}"]
        texts = [("", "description"), ("Source: ", "source")]
        said = [f"{before}{self.texts[key]}" for before, key in texts if key in self.texts]
        return [html.plain(one) for one in (*published, *said)]

    @property
    def points(self) -> list[tuple[str, str]]:
        """The points of the disclosure for the page: those without any text are one point, the last one."""
        said, missing = [], []
        for heading, text in self.facts:
            if text == NOT_STATED:
                missing.append(heading)
            else:
                said.append((heading, text))
        return [*said, *([("Not stated by the curator", f"{'; '.join(missing)}.")] if missing else [])]

    def heading(self, part: ReportPart) -> str:
        """Return the heading of a part of the page: the label of its query, and the numbers in words."""
        return ", ".join(filter(None, (self.names.query(part.origin.name), self._of(part))))

    def _of(self, part: ReportPart) -> str:
        """Return the kind of numbers of a part: ranges and quantiles with their keys, and the only range by itself."""
        made, _, table = part.of.partition(" ")
        if made not in ("ranges", "quantiles"):
            return part.of
        keys = [self.names.column(name) for name, _ in part.origin.ordered]
        if made == "ranges" and part.query.cells == 1:
            (only,) = range_labels(part.origin)
            return ", ".join(f"{self.names.column(key)} {range_text(text)}" for key, text in only.items())
        return f"{made} of {listed(keys)}{f', {table}' if table else ''}"


def stated(release: Published, path: str, account: dict[str, Any]) -> Stated:
    """Return what the curator states about a release.

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
        subject = Subject(spec=spec, plan=release.plan, program=last.program, sampler=last.sampler)
        found = {**disclosure(subject), **page_texts(spec)}
    spent = account["spent"]
    whose = "" if spec.privacy.protects.span is None else f" for {covered(replace(spec, about=tuple(found.items())))}"
    found["spent"] = (
        f"epsilon = {shown(spent['epsilon'])}, delta = {shown(spent['delta'])} so far{whose}. "
        f"{what_remains(account, release.plan)}"
    )
    return Stated(found, outer_labels(spec.queries))


def outer_labels(queries: Iterable[Query]) -> dict[str, str]:
    """Return labels with the edges of the cells below and above ordered keys; none if two queries have other edges.

    >>> from privacy.measure import Measure
    >>> from transforms.aggregation.ordered_key import OrderedKey
    >>> ages = OrderedKey(start=0, step=5, steps=20)
    >>> outer_labels([Query(name="q", measure=Measure(kind="count"), by=(("age", ages),))])
    {'cell age: below': 'below 0', 'cell age: above': '100 or more'}
    """
    found: dict[str, set[str]] = {}
    for name, key in (one for query in queries for one in query.ordered):
        found.setdefault(cell_label_of(name, BELOW), set()).add(f"below {key.text(0)}")
        found.setdefault(cell_label_of(name, ABOVE), set()).add(f"{key.text(key.steps)} or more")
    return {label: texts.pop() for label, texts in found.items() if len(texts) == 1}
