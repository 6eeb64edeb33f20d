"""The published spec: all keys that explain the numbers, and no paths of the data controller.

Only the keys that are listed here are published, so a new key stays private until a developer adds it. `freshness` is
left out, since it names a file or a topic and no number depends on it. A tree in a file is replaced with its nodes.
Paths are replaced with `withheld`, so the result is still a spec that any reader can `plan`. Comments are left out,
because they may hold anything.

The manifest has the digest of the whole spec, which depends on the paths too. A reader who guesses all paths can verify
the guess. That reveals a fact about folders, and none about people.
"""

import re
from functools import lru_cache
from io import StringIO
from typing import Any

from ruamel.yaml import YAML

from pipelines.spec.document import document_of
from pipelines.spec.hierarchy_file import is_file, nodes_of_file, plain
from transforms.sources.files.topic_segments import is_of_topic
from transforms.sources.formats.table import FORMATS

_COLUMNS = {
    *("entry", "owner", "time", "from", "to", "before", "after", "deleted", "order"),
    *("timezone", "types", "nulls", "expires"),
}

SHOWN: dict[str, frozenset[str] | None] = {
    "release": None,
    "changelog": frozenset({"format", *_COLUMNS, "bad_rows", "every", "shrink"}),
    "privacy": None,
    "schedule": None,
    "queries": None,
    "strategy": None,
    "output": frozenset({"format"}),
}
"""The published sections, each with its published keys; None: all of them."""

WITHHELD = "withheld"
PUBLIC = f"{WITHHELD}/public"
HEAD = "# As published: paths are withheld, and comments left out.\n"


@lru_cache(maxsize=1)
def public_spec(text: str) -> str:
    """Return the published form of a spec's text. The result is cached, since a stream needs it at each window."""
    content = document_of("spec", text).content
    shown = {name: _shown(content[name], SHOWN[name]) for name in content if name in SHOWN}
    for query in shown["queries"] if isinstance(shown.get("queries"), list) else ():
        for cells in query.get("by", {}).values():
            if isinstance(cells, dict) and is_file(cells.get("tree")):
                cells["tree"] = plain(nodes_of_file(cells["tree"]))
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
    """Return a withheld path of the same kind, since the kind decides which other keys are allowed."""
    paths = changelog["path"]
    path = str(paths[0] if isinstance(paths, list) else paths)
    if is_of_topic(path):
        return f"kafka://{WITHHELD}:9092/{WITHHELD}"
    endings = "|".join(re.escape(ending) for format_ in FORMATS.values() for ending in format_.endings)
    ending = re.search(rf"({endings})(\.(gz|bz2|zst))?$", path)
    dates = re.findall(r"%[YmdHMS]", path) if FORMATS[changelog["format"]].snapshots else []
    return "/".join([WITHHELD, *dates, f"*{ending[0] if ending else ''}"])
