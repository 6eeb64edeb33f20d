"""`run SPEC --new-release NAME`: another release about the same people, under a spec and folders of its own.

A release is frozen with its spec. Who wants other queries, or more noise, or less, makes a new one, and both budgets
add up. The spec is written beside the old one, so that it is the one to run from then on.
"""

import argparse
from io import StringIO
from pathlib import Path

from ruamel.yaml import YAML
from ruamel.yaml.constructor import RoundTripConstructor

from pipelines.epochs.due import due
from pipelines.epochs.results import Result
from pipelines.epochs.run import is_stream, run
from pipelines.spec.load import load
from pipelines.store.known_releases import known
from transforms.common.cloud import refuse_unreachable
from transforms.common.errors import SpecError


class _TimesAsWritten(RoundTripConstructor):
    """Leaves times as they are written: a zone would be lost."""


_TimesAsWritten.add_constructor("tag:yaml.org,2002:timestamp", lambda _, node: str(node.value))


def new_release(arguments: argparse.Namespace, flags: list[str]) -> Result:
    """Write the spec, run it, and say what all releases cost together."""
    streaming = is_stream(arguments, flags)
    refuse_unreachable(load(arguments.spec).output.folders)
    if not streaming:
        due(arguments, flags)  # what is wrong with the command is said before anything is written
    arguments.spec = str(write_spec(arguments.spec, arguments.new_release))
    document, text = run(arguments, flags)
    together = known(load(arguments.spec))
    document = {**document, "spec": arguments.spec, "together": together.document(begun=True)}
    lines = [text, *([together.text()] if together.others else []), f"run {arguments.spec} from now on"]
    return document, "\n".join(lines)


def write_spec(path: str, name: str) -> Path:
    """The spec under another name and with folders of its own: `wards.yaml` becomes `wards-NAME.yaml`.

    Raises:
        SpecError: that file is there already, or would not be a spec; or the old one is not a local file.
    """
    if "://" in path:
        raise SpecError(f"{path}: --new-release writes a spec beside this one, so take a local copy of it")
    old = load(path)
    new = old.path.with_name(f"{old.path.stem}-{name}{old.path.suffix}")
    yaml = YAML()
    yaml.Constructor = _TimesAsWritten
    yaml.width = 1_000_000
    document = yaml.load(old.text)
    document["release"] = name
    for side in ("public", "private"):
        document["output"][side] = f"{document['output'][side].rstrip('/')}-{name}"
    text = StringIO()
    yaml.dump(document, text)
    try:
        with new.open("x", encoding="utf-8") as file:
            file.write(text.getvalue())
    except FileExistsError:
        raise SpecError(f"{new}: is there already; run it as it is, or choose another name") from None
    try:
        load(new)
    except SpecError:
        new.unlink()
        raise
    return new
