"""`slackwater registry`: an entry for the public registry of differential privacy deployments. Reads no data."""

from dataclasses import dataclass, field
from datetime import datetime
from io import StringIO
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from pipelines.common.arguments import SpecLike, refuse_ending, refuse_inside, spec_of
from pipelines.common.value import Value
from pipelines.common.version import program
from pipelines.disclosure.facts import Subject
from pipelines.epochs.failures import reading_folders
from pipelines.epochs.plans import plan_for
from pipelines.epochs.settled import refuse_another
from pipelines.registry.entry import entry_of, missing
from pipelines.spec.load import Spec
from pipelines.store.commit import Commit
from pipelines.store.store import Store
from privacy.noise.sampling import SAMPLERS
from transforms.common.cloud import refuse_unreachable
from transforms.common.errors import SpecError
from transforms.common.sinks import write_text


@dataclass(frozen=True, slots=True, kw_only=True)
class RegistryEntry(Value):
    """An entry of the registry.

    Attributes:
        release: Name of the release.
        file: Path of the entry.
        entry: The entry.
    """

    release: str
    file: str
    entry: dict[str, Any] = field(repr=False)

    def to_json(self) -> dict[str, Any]:
        """Return the document of `slackwater registry --json`: the entry."""
        return self.entry

    def text(self) -> str:
        """Return the text that `slackwater registry` prints."""
        return (
            f"{self.release}: an entry of the registry of deployments, in {self.file}. Its status is Draft: read it, "
            "and propose it at github.com/opendp/deployments-registry-data"
        )


def registry(spec: SpecLike, *, output: str | Path = "registry.yaml") -> RegistryEntry:
    """Write an entry for the public registry of differential privacy deployments. Reads no data.

    Args:
        spec: The path of a spec, or what `load` returns. Its section `about` has curator, use, region and
            justification.
        output: Path of the entry, which ends in `.yaml`.

    Raises:
        SpecError: A text is missing, or the entry cannot be there.
        RefusedError: The folders hold another release.
    """
    one, file = spec_of(spec), str(output)
    refuse_ending("output", file, [".yaml", ".yml"])
    refuse_inside("output", file, one.output.public)
    commits = _commits(one)
    last = commits[-1] if commits else None
    subject = Subject(
        spec=one,
        plan=plan_for(one, commits),
        program=program() if last is None else last.program,
        sampler=SAMPLERS if last is None else last.sampler,
    )
    if problems := missing(subject):
        raise SpecError("\n".join(f"{one.path}: {problem}" for problem in problems))
    entry = entry_of(subject, datetime.fromisoformat(commits[0].committed_at) if commits else None)
    written = StringIO()
    yaml = YAML(typ="safe", pure=True)
    yaml.default_flow_style = False
    yaml.sort_base_mapping_type_on_output = False  # type: ignore[assignment]
    yaml.width = 1_000_000
    yaml.dump(entry, written)
    write_text(file, written.getvalue())
    return RegistryEntry(release=one.release, file=file, entry=entry)


def _commits(spec: Spec) -> tuple[Commit, ...]:
    refuse_unreachable(spec.output.folders)
    with reading_folders(spec):
        commits = tuple(Store(spec.output.public, spec.output.private).commits())
    if commits:
        refuse_another(spec, commits)
    return commits
