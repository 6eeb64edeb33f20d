"""A spec of sanitised records, read and checked, with the mechanism of each attribute."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from pydantic import ValidationError

from pipelines.sanitised.models import ColumnSection, RecordsSection, SanitiseModel
from pipelines.spec.document import read_document
from pipelines.spec.errors import describe, name_of
from pipelines.spec.kinds import refuse_another
from pipelines.spec.load import Output
from privacy.json_values import digest_of
from privacy.problems import RuleError, placed
from privacy.sanitised.attributes import Attribute, Category, Curve, Number, Subset
from privacy.sanitised.grid import Grid
from privacy.sanitised.record import Sanitisation
from transforms.common.errors import SpecError
from transforms.common.source import Source
from transforms.sanitised.columns import source_columns


@dataclass(frozen=True, slots=True, kw_only=True)
class SanitiseSpec:
    """One release of sanitised records.

    Attributes:
        path: Path of the file, as given.
        separator: Separator of the elements of sets.
        sha256: Digest of the mechanisms, and not of the paths of records or of `about`.
        about: Texts of the section `about` by their keys.
    """

    release: str
    source: Source
    record: Sanitisation
    separator: str
    output: Output
    path: Path
    sha256: str
    about: tuple[tuple[str, str], ...] = ()


def load_sanitise(path: str | Path) -> SanitiseSpec:
    """Read a spec of sanitised records and check it.

    Raises:
        SpecError: The spec is wrong; one line for each problem, with file, line and key, in the order of the file.
    """
    path = Path(path)
    document = read_document(path)
    refuse_another(document, "records")
    try:
        model = SanitiseModel.model_validate(document.content)
    except ValidationError as error:
        raise SpecError(describe(error, document, SanitiseModel)) from None
    attributes: list[Attribute] = []
    problems: list[str] = []
    for place, column in enumerate(model.columns):
        try:
            with placed("columns", place):
                attributes.append(_attribute(column))
        except RuleError as error:
            at = error.path
            problems.append(f"{document.name}:{document.line(at)}: {name_of(at)}: {error.message}")
    if problems:
        raise SpecError("\n".join(problems))
    record = Sanitisation(attributes=tuple(attributes))
    return SanitiseSpec(
        release=model.sanitise,
        source=_source(model.records, record),
        record=record,
        separator=model.records.separator,
        output=Output(**model.output.model_dump()),
        path=path,
        sha256=_sha256(model),
        about=() if model.about is None else model.about.texts,
    )


def _attribute(column: ColumnSection) -> Attribute:
    values = column.values or []
    missing = column.missing
    if column.kind == "category":
        return Category.planned(
            column.name,
            values,
            missing="other" if missing is None else str(missing),
            epsilon=column.epsilon,
            delta=column.delta,
            distances=_distances(column, len(values)),
            probabilities=column.probabilities,
        )
    if column.kind == "set":
        return Subset.planned(column.name, values, at_most=column.at_most, epsilon=column.epsilon, delta=column.delta)
    assert column.min is not None
    assert column.max is not None
    assert column.step is not None
    assert not isinstance(missing, str)
    grid = Grid.of(low=column.min, high=column.max, step=column.step)
    if column.kind == "number":
        return Number.planned(column.name, grid, missing=missing, epsilon=column.epsilon, delta=column.delta)
    return Curve.planned(
        column.name,
        column.points or [],
        grid,
        missing=missing,
        total=column.total,
        metric=column.metric or "mean",
        epsilon=column.epsilon,
        delta=column.delta,
    )


def _distances(column: ColumnSection, values: int) -> np.ndarray | None:
    if column.distances is None:
        return None
    if column.distances == "order":
        places = np.arange(float(values))
        return np.abs(np.subtract.outer(places, places))
    return np.array(column.distances, dtype=np.float64)


def _source(section: RecordsSection, record: Sanitisation) -> Source:
    """Return the source with every column as text: a wrong value then counts as `missing`, and its row stays usable."""
    declared = () if section.entry_type is None else ((section.entry, section.entry_type),)
    return Source(
        format=section.format,
        paths=tuple(section.path),
        entry=section.entry,
        time=None,
        before=None,
        after=None,
        types=(*declared, *((column, "string") for column in sorted(source_columns(record)))),
        nulls=tuple(sorted(set(section.nulls or ()))),
    )


def _sha256(model: SanitiseModel) -> str:
    return digest_of(model.model_dump(exclude={"records": {"path"}, "about": True}))
