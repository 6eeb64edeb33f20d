"""States of a stateful step, with which a test can act as the runner: run a step, lose its state, restore it."""

from dataclasses import dataclass, field
from inspect import signature

import apache_beam as beam
from apache_beam.transforms.userstate import BagStateSpec


@dataclass(slots=True)
class Cell:
    """A state with one value."""

    value: bytes | None = None

    def read(self) -> bytes | None:
        return self.value

    def write(self, value: bytes) -> None:
        self.value = value


@dataclass(slots=True)
class Bag:
    """A state with several values."""

    values: list[bytes] = field(default_factory=list)

    def read(self) -> list[bytes]:
        return list(self.values)

    def add(self, value: bytes) -> None:
        self.values.append(value)

    def clear(self) -> None:
        self.values = []


States = dict[str, Cell | Bag]


def states(work: beam.DoFn) -> States:
    """Return empty states, by the names of the step's arguments that request them."""
    asked = {name: parameter.default for name, parameter in signature(work.process).parameters.items()}
    return {
        name: Bag() if isinstance(default.state_spec, BagStateSpec) else Cell()
        for name, default in asked.items()
        if isinstance(default, beam.DoFn.StateParam)
    }
