"""The public side of a release that some version made, with one of its cells renamed: names may hold anything."""

import hashlib
import json
import shutil
from pathlib import Path

from tests.releases.continued import unpacked

RELEASE = Path(__file__).parents[2] / "releases/0.3.0/everything"
NASTY = '</script><img src=x onerror="document.title=1">&amp;'
"""In the place of cell `b`."""


def public_side(folder: Path) -> Path:
    """Return the public folder alone."""
    unpacked(RELEASE, folder)
    for name in ("private", "data", "next"):
        shutil.rmtree(folder / name)
    public = folder / "public"
    spec = public / "spec.yaml"
    spec.write_text(spec.read_text().replace("    - b\n", f"    - '{NASTY}'\n"))
    manifest = json.loads((public / "manifest.json").read_text())
    cell = NASTY.replace('"', '""')
    for epoch in manifest["epochs"]:
        for name in [name for name in epoch["files"] if name.startswith("estimates/")]:
            (public / name).write_text((public / name).read_text().replace('Z","b",', f'Z","{cell}",'))
            epoch["files"][name]["sha256"] = hashlib.sha256((public / name).read_bytes()).hexdigest()
    (public / "manifest.json").write_text(json.dumps(manifest))
    return public
