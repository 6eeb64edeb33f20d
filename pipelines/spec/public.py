"""The spec as it is published: what explains the numbers, and nothing of where things lie with the data controller.

Only the keys that are named here are shown, so a key that is new stays private until somebody decides; `freshness`
names a file or a topic, and no number depends on it. In the place of paths stands `withheld`, so that it is a spec
still and any reader can `plan` it. Comments are left out: they may hold anything.

The digest in the manifest is of the whole spec, so it changes with the paths too. Who guesses all of them can see that
the guess is right: that is a fact about folders and not about people.
"""

import re
from functools import lru_cache
from io import StringIO
from typing import Any

from ruamel.yaml import YAML

from pipelines.spec.document import document_of
from transforms.sources.files.topic_segments import is_of_topic
from transforms.sources.formats.table import FORMATS

_COLUMNS = {"entry", "owner", "time", "before", "after", "order", "timezone", "types", "nulls"}

SHOWN: dict[str, frozenset[str] | None] = {
    "release": None,
    "changelog": frozenset({"format", *_COLUMNS, "bad_rows", "every", "shrink"}),
    "privacy": None,
    "schedule": None,
    "queries": None,
    "strategy": None,
    "output": frozenset({"format"}),
}
"""The sections that are published, and which of their keys; None: all of them."""

WITHHELD = "withheld"
PUBLIC = f"{WITHHELD}/public"
HEAD = "# As published: paths are withheld, and comments left out.\n"


@lru_cache(maxsize=1)
def public_spec(text: str) -> str:
    """What is published of a spec's text. A stream asks for it at each window."""
    content = document_of("spec", text).content
    shown = {name: _shown(content[name], SHOWN[name]) for name in content if name in SHOWN}
    if "changelog" in shown:
        shown["changelog"]["path"] = _place(content["changelog"])
    if "output" in shown:
        shown["output"] |= {"public": PUBLIC, "private": f"{WITHHELD}/private"}
    yaml = YAML(pure=True)
    yaml.width = 1_000_000
    yaml.sort_base_mapping_type_on_output = False  # type: ignore[assignment]
    written = StringIO()
    yaml.dump(shown, written)
    return HEAD + written.getvalue()


def _shown(section: Any, keys: frozenset[str] | None) -> Any:
    return section if keys is None else {key: value for key, value in section.items() if key in keys}


def _place(changelog: dict[str, Any]) -> str:
    """A path of the same kind: what may stand beside it depends on that."""
    paths = changelog["path"]
    path = str(paths[0] if isinstance(paths, list) else paths)
    if is_of_topic(path):
        return f"kafka://{WITHHELD}:9092/{WITHHELD}"
    endings = "|".join(re.escape(ending) for format_ in FORMATS.values() for ending in format_.endings)
    ending = re.search(rf"({endings})(\.(gz|bz2|zst))?$", path)
    dates = re.findall(r"%[YmdHMS]", path) if FORMATS[changelog["format"]].snapshots else []
    return "/".join([WITHHELD, *dates, f"*{ending[0] if ending else ''}"])
