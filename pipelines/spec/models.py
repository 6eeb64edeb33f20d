"""The shape of a whole spec: its sections and the rules that hold between them."""

from collections.abc import Iterator
from typing import Annotated, Any, Self

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from pipelines.spec.about import AboutSection
from pipelines.spec.bigquery import BigQuerySection
from pipelines.spec.calendar import DAY
from pipelines.spec.changelog import ChangelogSection
from pipelines.spec.errors import Problem, refuse
from pipelines.spec.fields import (
    ReleaseName,
    Section,
    Text,
    of_kind,
    one_of,
)
from pipelines.spec.finding import finding_problems
from pipelines.spec.paths import remote_problem, within
from pipelines.spec.privacy import PrivacySection
from pipelines.spec.queries import QuerySection
from pipelines.spec.rules import (
    bounds_nothing,
    cell_problems,
    column_problems,
    consistency_problems,
    distance_problems,
    kind_problems,
    sliding_problems,
    split_problems,
    strategy_problems,
)
from pipelines.spec.schedule import ScheduleSection
from pipelines.spec.sinks import SinkSection
from pipelines.spec.strategies import GivenStrategy
from pipelines.spec.units import unit_problems
from pipelines.spec.words import not_one_of
from privacy.json_values import digest_of
from transforms.common.output_formats import DEFAULT, OUTPUT_FORMATS
from transforms.release.marginal_tables import ALL
from transforms.sources.formats.table import FORMATS


class FoldersSection(Section):
    """The public and the private folder, and the format of the public files."""

    public: Text
    private: Text
    format: Annotated[str, BeforeValidator(one_of(OUTPUT_FORMATS))] = DEFAULT

    @model_validator(mode="after")
    def _check(self) -> Self:
        places = {"public": self.public, "private": self.private}
        refuse(((key,), problem) for key, path in places.items() if (problem := remote_problem(path)))
        if within(self.private, self.public):
            refuse([(("private",), "lies inside public; keep private files in a separate folder")])
        if within(self.public, self.private):
            refuse([(("public",), "lies inside private; keep public files in a separate folder")])
        return self


class OutputSection(FoldersSection):
    """The folders of a release of numbers, and the tables that the numbers are also loaded into."""

    bigquery: BigQuerySection | None = None
    witness: Text | None = None
    latest: Annotated[str, BeforeValidator(one_of(OUTPUT_FORMATS))] | None = None
    report: Text | None = None

    @model_validator(mode="after")
    def _apart(self) -> Self:
        for name in ("public", "private"):
            if self.witness is not None and within(self.witness, getattr(self, name)):
                refuse([(("witness",), f"lies inside {name}, and would be restored with it; put it on other storage")])
            if self.report is not None and within(self.report, getattr(self, name)):
                refuse([(("report",), f"lies inside {name}, which holds only files of the release; move the page")])
        if self.report is not None and not self.report.endswith(".html"):
            refuse([(("report",), "the name of the page must end in .html")])
        return self

    @property
    def sinks(self) -> dict[str, SinkSection]:
        """Sections of the sinks that the spec names, by their keys."""
        return of_kind(dict(self), SinkSection)


def _unique(queries: list[QuerySection]) -> list[QuerySection]:
    names = [query.name.lower() for query in queries]  # some file systems ignore case in names
    refuse(
        (
            (place, "name"),
            f"{queries[place].name!r} is the name of queries[{names.index(name)}] already (case is ignored)",
        )
        for place, name in enumerate(names)
        if name in names[:place]
    )
    return queries


class SpecModel(Section):
    """A whole spec."""

    release: ReleaseName
    changelog: ChangelogSection
    privacy: PrivacySection
    schedule: ScheduleSection
    queries: Annotated[list[QuerySection], Field(min_length=1), AfterValidator(_unique)]
    strategy: GivenStrategy = "auto"
    output: OutputSection
    about: AboutSection | None = None

    @model_validator(mode="after")
    def _whole(self) -> Self:
        """Replace a missing span of a distance with one that covers the start and the ends of all windows."""
        protects, windows = self.privacy.partly, self.schedule.windows
        if protects is None or protects.span is not None:
            return self
        if windows is None:
            message = "missing; the release has no end: add span: 14d, or schedule.until"
            refuse([(("privacy", "protects", "span"), message)])
            return self
        whole = protects.model_copy(update={"span": (windows + 1) * self.schedule.every})
        return self.model_copy(update={"privacy": self.privacy.model_copy(update={"protects": whole})})

    @model_validator(mode="after")
    def _check(self) -> Self:
        problems: list[Problem] = []
        if self.privacy.unit == self.changelog.entry != "entry":
            problems.append((("privacy", "unit"), "the entry column; write unit: entry"))
        for place, path in enumerate(self.changelog.path):
            if within(path, self.output.public):
                message = "lies inside output.public; a changelog is never public, move one of them"
                problems.append((("changelog", "path", place), message))
        told = self.changelog.told
        if told is not None and within(told.file or "/dev/null", self.output.public):
            message = "lies inside output.public, where nothing else may lie; move it"
            problems.append((("changelog", "freshness", "file"), message))
        if self.changelog.kafka is not None and within(self.changelog.kafka, self.output.public):
            problems.append((("changelog", "kafka"), "lies inside output.public; it holds secrets, move it"))
        windows = self.schedule.windows
        problems += sliding_problems(self.queries, every=self.schedule.every, windows=windows)
        problems += strategy_problems(
            self.strategy,
            self.queries,
            privacy=self.privacy,
            windows=windows,
            every=self.schedule.every,
            slack=self.schedule.slack,
        )
        months = self.schedule.every % DAY and self.schedule.timezone is not None
        if FORMATS[self.changelog.format].snapshots and months and self.changelog.every is None:
            problems.append((("changelog", "every"), "missing; say how far apart snapshots are, such as 1d"))
        if not bounds_nothing(self.queries, self.strategy, self.privacy):
            problems += [(("privacy", *place), text) for place, text in self.privacy.unbounded()]
        problems += cell_problems(self.queries, self.strategy, self.privacy)
        problems += distance_problems(self.queries, self.privacy)
        problems += unit_problems(self.queries, self.privacy, every=self.schedule.every)
        problems += column_problems(self.queries, self.strategy)
        problems += kind_problems(self.queries)
        problems += finding_problems(
            self.queries, self.strategy, self.privacy, entry=self.changelog.entry, windows=windows
        )
        problems += split_problems(self.queries, split=self.privacy.split)
        problems += consistency_problems(self.queries, windows=windows)
        for sink in self.output.sinks.values():
            problems += sink.problems(self.queries)
        problems += self._label_problems()
        refuse(problems)
        return self

    def _label_problems(self) -> Iterator[Problem]:
        """Yield the labels of things that the spec does not have."""
        if self.about is None:
            return
        queries = [query.name for query in self.queries]
        values = [*dict.fromkeys(column for query in self.queries for column in query.columns)]
        units = [self.changelog.entry, *([] if self.privacy.unit == "entry" else [self.privacy.unit])]
        measured = [query.measure.column for query in self.queries if query.measure.column is not None]
        columns = [*dict.fromkeys([*values, *units, *measured])]
        for section, known in (("labels", queries), ("columns", columns), ("cells", values)):
            for name in getattr(self.about, section, None) or ():
                if name not in known:
                    yield ("about", section, name), not_one_of(name, known)
        for name, labels in (self.about.cells or {}).items():
            keys = [query.by[name] for query in self.queries if name in query.by]
            if keys and all(isinstance(key, list) for key in keys):
                listed = [*dict.fromkeys(str(value) for key in keys for value in key)]
                unknown = [value for value in labels if value not in (*listed, ALL)]
                yield from ((("about", "cells", name, value), not_one_of(value, listed)) for value in unknown)

    def sha256(self) -> str:
        """Return the SHA-256 of the checked values, not of the text; defaults count as if they were written.

        Optional keys without a value do not count, so a new one does not end the releases that began without it. It
        leaves out keys that change neither published values nor their protection, so that they can be changed
        during a release: those for when bad input stops a run, when a window is published, where passwords are,
        which tables files are loaded into, where commits are witnessed, and facts for readers.
        """
        added = type(self.output).model_fields.keys() - FoldersSection.model_fields.keys()
        left_out: dict[str, Any] = {
            "changelog": {"bad_rows", "shrink", "kafka", "freshness"},
            "output": added,
            "about": True,
        }
        return digest_of(self.model_dump(exclude=left_out, exclude_none=True))
