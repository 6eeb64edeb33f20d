"""Sections of `output` that name tables, which the public files are also loaded into."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal, Self

from pydantic import model_validator

from pipelines.spec.errors import Problem, refuse
from pipelines.spec.fields import Section
from pipelines.spec.queries import QuerySection

TableSide = Literal["estimates", "nodes"]


@dataclass(frozen=True, slots=True)
class Loaded:
    """A table of a sink, with the side of the release that is loaded into it."""

    sink: str
    side: TableSide
    name: str


class SinkSection(Section):
    """The table of estimates, and optionally the table of nodes."""

    estimates: str
    nodes: str | None = None

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.nodes == self.estimates:
            refuse([(("nodes",), "the table of estimates; nodes have other columns, so name another one")])
        return self

    def tables(self, sink: str) -> Iterator[Loaded]:
        """Yield the tables of this sink."""
        yield Loaded(sink, "estimates", self.estimates)
        if self.nodes is not None:
            yield Loaded(sink, "nodes", self.nodes)

    def problems(self, queries: Iterable[QuerySection]) -> Iterator[Problem]:
        """Find keys that cannot be columns of the tables; none by default."""
        return iter(())
