"""`run SPEC --new-release NAME`: another release about the same people, under a spec and folders of its own.

A release is frozen with its spec. Who wants other queries, or more noise, or less, makes a new one, and both losses add
up. The spec is written beside the old one, so that it is the one to run from then on.
"""

import sys
from io import StringIO
from pathlib import Path

from ruamel.yaml import YAML

from pipelines.spec.document import Constructor
from pipelines.spec.load import Spec, load
from pipelines.store.known_releases import known, remember
from transforms.common.errors import SpecError


def write_spec(path: str, name: str) -> Path:
    """The spec under another name and with folders of its own: `wards.yaml` becomes `wards-NAME.yaml`.

    Raises:
        SpecError: that file is there already, or would not be a spec; or the old one is not a local file.
    """
    if "://" in path:
        raise SpecError(f"{path}: --new-release writes a spec beside this one, so take a local copy of it")
    old = load(path)
    new = old.path.with_name(f"{old.path.stem}-{name}{old.path.suffix}")
    if new.exists():
        raise SpecError(f"{new}: is there already; run it as it is, or choose another name")
    yaml = YAML()
    yaml.Constructor = Constructor
    yaml.width = 1_000_000
    document = yaml.load(old.text)
    document["release"] = name
    for side in ("public", "private"):
        document["output"][side] = f"{document['output'][side].rstrip('/')}-{name}"
    text = StringIO()
    yaml.dump(document, text)
    new.write_text(text.getvalue(), encoding="utf-8")
    try:
        load(new)
    except SpecError:
        new.unlink()
        raise
    return new


def tell_others(spec: Spec) -> None:
    """Before a release begins: which others about the same people are known, and what all cost together."""
    found = known(spec)
    if not found.others:
        return
    print("\n".join(f"slackwater: {line}" for line in found.text().splitlines()), file=sys.stderr, flush=True)
    for folder in remember(found):
        print(f"slackwater: {folder}: cannot be written, so this release is not noted there", file=sys.stderr)
