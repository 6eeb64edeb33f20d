"""Beam understands the types of every transform, and prints no warning while a pipeline is built."""

import importlib
import inspect
from collections.abc import Iterator
from pathlib import Path

import apache_beam as beam
import pytest
from apache_beam.typehints.decorators import IOTypeHints

ROOT = Path(__file__).resolve().parents[3]


def transforms() -> Iterator[type[beam.PTransform]]:
    for path in sorted([*ROOT.glob("transforms/**/*.py"), *ROOT.glob("pipelines/**/*.py")]):
        name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        if not path.stem.startswith("__"):
            for _, found in inspect.getmembers(importlib.import_module(name), inspect.isclass):
                if issubclass(found, beam.PTransform) and found.__module__ == name:
                    yield found


def test_beam_does_not_warn_about_the_types_of_a_transform(caplog: pytest.LogCaptureFixture) -> None:
    found = list(transforms())

    for transform in found:
        hints = IOTypeHints.from_callable(transform.expand)
        assert hints is not None, transform
        hints.strip_pcoll()

    assert len(found) > 12
    assert [record.getMessage() for record in caplog.records] == []
