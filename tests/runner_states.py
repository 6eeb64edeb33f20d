"""What a runner keeps for a stateful step, so that a test can play the runner: take a step, forget it, put it back."""

from dataclasses import dataclass, field
from inspect import signature

import apache_beam as beam
from apache_beam.transforms.userstate import BagStateSpec


@dataclass(slots=True)
class Cell:
    """One value."""

    value: bytes | None = None

    def read(self) -> bytes | None:
        return self.value

    def write(self, value: bytes) -> None:
        self.value = value


@dataclass(slots=True)
class Bag:
    """Some values."""

    values: list[bytes] = field(default_factory=list)

    def read(self) -> list[bytes]:
        return list(self.values)

    def add(self, value: bytes) -> None:
        self.values.append(value)

    def clear(self) -> None:
        self.values = []


States = dict[str, Cell | Bag]


def states(work: beam.DoFn) -> States:
    """Empty ones, by the names of the arguments with which a step asks for them."""
    asked = {name: parameter.default for name, parameter in signature(work.process).parameters.items()}
    return {
        name: Bag() if isinstance(default.state_spec, BagStateSpec) else Cell()
        for name, default in asked.items()
        if isinstance(default, beam.DoFn.StateParam)
    }
