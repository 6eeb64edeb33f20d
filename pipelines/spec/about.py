"""`about`: who publishes a release and why, for readers and registers. It may change during a release."""

import unicodedata
from collections.abc import Callable
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator

from pipelines.spec.errors import wrong
from pipelines.spec.fields import EITHER, SETTINGS, WORD, Section, Text, one_of
from pipelines.spec.words import show

CURATORS = ("Government", "Industry", "Nonprofit")
"""Types of curators in the registry of differential privacy deployments."""

SECTORS = ("Education", "Energy", "Finance", "Government", "Healthcare", "Technology")
"""Sectors in the same registry."""

LABEL, PROSE = 200, 4000
"""Most characters of a name and of a longer text."""


def _at_most(most: int) -> Callable[[str], str]:
    """Return a validator that refuses longer texts and control characters: every text reaches public pages."""

    def check(text: str) -> str:
        if len(text) > most:
            raise wrong(f"has {len(text):,} characters; at most {most:,} are allowed")
        if any(unicodedata.category(sign) == "Cc" and sign not in "\n\t" for sign in text):
            raise wrong("holds a control character; remove it")
        return text

    return check


Label = Annotated[Text, AfterValidator(_at_most(LABEL))]
Prose = Annotated[Text, AfterValidator(_at_most(PROSE))]


def label_of(query: str) -> str:
    """Return the key of the label of a query."""
    return f"label {query}"


def column_label_of(column: str) -> str:
    """Return the key of the label of a key column."""
    return f"column {column}"


def cell_label_of(column: str, value: str) -> str:
    """Return the key of the label of a value of a key column."""
    return f"cell {column}: {value}"


OF_PAGES = ("title", "description", "source", "contact")
"""Keys of texts for pages, besides labels."""


def is_label(key: str) -> bool:
    """Return whether the text with this key is the label of a query, a key column or a cell."""
    return key.startswith(("label ", "column ", "cell "))


def is_of_pages(key: str) -> bool:
    """Return whether the text with this key is for pages and tables."""
    return key in OF_PAGES or is_label(key)


class CuratorSection(Section):
    """Name and type of the organisation that publishes the release."""

    name: Label
    type: Annotated[str, BeforeValidator(one_of(CURATORS))]


def _name_or_section(value: Any) -> Any:
    if not isinstance(value, str | dict):
        raise wrong(f"expected a name, or {{name: NAME, type: {CURATORS[0]}}}, not {show(value)}")
    return value


class CuratorFacts(Section):
    """Facts about a release, sanitised records or a survey that only its curator knows."""

    curator: (
        Annotated[
            Annotated[Label, WORD] | Annotated[CuratorSection, SETTINGS], EITHER, BeforeValidator(_name_or_section)
        ]
        | None
    ) = None
    contact: Label | None = None
    use: Prose | None = None
    sector: Annotated[str, BeforeValidator(one_of(SECTORS))] | None = None
    region: Label | None = None
    justification: Prose | None = None

    @property
    def texts(self) -> tuple[tuple[str, str], ...]:
        """The given texts by their keys; the curator's type has the key `curator_type`, a label that of its thing."""
        given = self.model_dump(exclude_none=True)
        given |= {label_of(name): text for name, text in given.pop("labels", {}).items()}
        given |= {column_label_of(name): text for name, text in given.pop("columns", {}).items()}
        for name, values in given.pop("cells", {}).items():
            given |= {cell_label_of(name, value): text for value, text in values.items()}
        if isinstance(given.get("curator"), dict):
            given |= {"curator": given["curator"]["name"], "curator_type": given["curator"]["type"]}
        return tuple(sorted(given.items()))


class PageFacts(CuratorFacts):
    """Facts about a release or a survey that only its curator knows, and texts that begin its page."""

    title: Label | None = None
    description: Prose | None = None
    source: Label | None = None


class AboutSection(PageFacts):
    """Facts about a release that only its curator knows, and texts for its page."""

    labels: dict[str, Label] | None = None
    columns: dict[str, Label] | None = None
    cells: dict[str, dict[str, Label]] | None = None
