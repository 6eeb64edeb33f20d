"""`run SPEC --new-release NAME`: another release about the same people, with its own spec and folders.

The spec of a release cannot change. Other queries, or more or less noise, need a new release, and both budgets add up.
The new spec is written next to the old one, and is the one to run from then on.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from io import StringIO
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.constructor import RoundTripConstructor

from pipelines.common.arguments import Moment, SpecLike, moment_of, path_of
from pipelines.common.errors import ArgumentError
from pipelines.common.value import Value
from pipelines.epochs.due import due
from pipelines.run.operation import Ran, pace_of, run
from pipelines.spec.load import load
from pipelines.store.known_releases import known
from pipelines.store.together import Known
from transforms.common.cloud import refuse_unreachable
from transforms.common.errors import SpecError


@dataclass(frozen=True, slots=True, kw_only=True)
class Begun(Value):
    """A new release, and the cost of all releases about the same people together.

    Attributes:
        spec: Path of the new spec, which `run` needs from now on.
        ran: Result of the first run.
        together: The releases that are known here, including the new one.
    """

    spec: str
    ran: Ran
    together: Known

    def to_json(self) -> dict[str, Any]:
        """Return the document of `slackwater run --new-release NAME --json`."""
        return {**self.ran.to_json(), "spec": self.spec, "together": self.together.document(begun=True)}

    def text(self) -> str:
        """Return the text that `slackwater run --new-release NAME` prints."""
        together = [self.together.text()] if self.together.others else []
        return "\n".join([self.ran.text(), *together, f"run {self.spec} from now on"])


class _TimesAsWritten(RoundTripConstructor):
    """Keeps times as they are written, since reading them would lose the zone."""


_TimesAsWritten.add_constructor("tag:yaml.org,2002:timestamp", lambda _, node: str(node.value))


def new_release(
    spec: SpecLike,
    new_release: str,
    *,
    until: Moment = None,
    shards: int | None = None,
    poll: timedelta | None = None,
    lag: timedelta | None = None,
    assume_complete: bool = False,
    options: Sequence[str] = (),
) -> Begun:
    """Begin another release about the same people, with its own spec and folders. Both budgets add up.

    Args:
        spec: The path of the spec of the earlier release, or what `load` returns.
        new_release: Name of the new release.
        until, shards, poll, lag, assume_complete, options: As in `run`.

    Raises:
        SpecError: As `run`; or the new spec cannot be written.
        InputError, RefusedError: As `run`.
    """
    path = path_of(spec)
    refuse_unreachable(load(path).output.folders)
    end = moment_of("until", until)  # refuse wrong arguments before anything is written
    if pace_of(shards, poll, lag, options) is None:
        due(path, end, options)
    new = str(write_spec(path, new_release))
    ran = run(new, until=until, shards=shards, poll=poll, lag=lag, assume_complete=assume_complete, options=options)
    return Begun(spec=new, ran=ran, together=known(load(new)))


def write_spec(path: str, name: str) -> Path:
    """Write the spec under another name, with its own folders and report: `wards.yaml` becomes `wards-NAME.yaml`.

    Raises:
        SpecError: The new file exists or would not be a valid spec, or the old spec is not a local file.
    """
    if "://" in path:
        raise SpecError(f"{path}: --new-release writes a spec next to this one, so use a local copy")
    old = load(path)
    if "/" in name or "\0" in name:
        raise ArgumentError("new_release", "expected a name without slashes, such as wards-2027", repr(name))
    new = old.path.with_name(f"{old.path.stem}-{name}{old.path.suffix}")
    yaml = YAML()
    yaml.Constructor = _TimesAsWritten
    yaml.width = 1_000_000
    document = yaml.load(old.text)
    document["release"] = name
    for side in ("public", "private"):
        document["output"][side] = f"{document['output'][side].rstrip('/')}-{name}"
    for key in ("report", "witness"):  # else the runs of both releases write one file
        if key in document["output"]:
            path = document["output"][key].rstrip("/")
            ending = Path(path).suffix
            document["output"][key] = f"{path.removesuffix(ending)}-{name}{ending}"
    text = StringIO()
    yaml.dump(document, text)
    try:
        with new.open("x", encoding="utf-8") as file:
            file.write(text.getvalue())
    except FileExistsError:
        raise SpecError(f"{new}: already exists; run it as it is, or choose another name") from None
    try:
        load(new)
    except SpecError:
        new.unlink()
        raise
    return new
