"""Find other specs in the folder of a spec."""

import re
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from pipelines.spec.document import read_document
from pipelines.spec.kinds import KEYS, SpecKind, kind_of
from transforms.common.errors import SpecError

T = TypeVar("T")


def other_specs(path: Path, kind: SpecKind, load: Callable[[Path], T]) -> tuple[list[T], tuple[str, ...]]:
    """Return the other specs of one kind in the folder of a spec, and the paths of specs that cannot be read.

    Args:
        path: Path of the spec.
        kind: Kind of the specs to find. With `sums`, specs of unknown kind count as specs that cannot be read.
        load: Reads a spec of this kind.
    """
    found, unread = list[T](), list[str]()
    if path.parts[:1] == ("gs:",):
        return found, ()
    for other in sorted(path.parent.iterdir()):
        if other.suffix not in (".yaml", ".yml") or other.name == path.name or other.name.startswith("."):
            continue
        its_kind: SpecKind | None = None
        with suppress(SpecError):
            its_kind = kind_of(read_document(other).content)
        try:
            if its_kind == kind:
                found.append(load(other))
            elif its_kind is None and kind == "sums" and _may_be_spec(other):
                unread.append(str(other))
        except SpecError:
            unread.append(str(other))
    return found, tuple(unread)


def _may_be_spec(path: Path) -> bool:
    """Return whether a file has a key of a spec, or cannot be opened."""
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return True
    return re.search(rf"^({'|'.join(KEYS)})[ ]*:", text, re.MULTILINE) is not None
