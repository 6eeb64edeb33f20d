"""Small epochs for tests of the release store: what a run would make, without a run."""

import hashlib
from collections.abc import Sequence
from pathlib import Path

from pipelines.spec.public import public_spec
from pipelines.store.attempt import Attempt
from pipelines.store.commit import RELEASE, Commit, ReadFile
from pipelines.store.manifest import manifest_json
from pipelines.store.store import FileNames, Store
from privacy.accounting.accounting import Budget
from transforms.aggregation.shard_state import STATE
from transforms.release.release import ESTIMATES, NODES

SPEC = "release: wards\n"
PLAN = '{"version": 1}'
SECRET = "data/secret-part.parquet"
DAY = 86_400_000_000
MADE = (
    "nodes/a-0.parquet",
    "nodes/b-0.parquet",
    "estimates/a-0.parquet",
    "state/shard-0.parquet",
    "diagnostics/read.json",
)


def planned(made: Sequence[str] = MADE) -> FileNames:
    """Return the names of files that a plan requires."""
    sides = (NODES, ESTIMATES, STATE)
    return {side: [n.removeprefix(f"{side}/") for n in made if n.startswith(f"{side}/")] for side in sides}


def record(epoch: int, *, release: str = "wards") -> Commit:
    """Return the record of an epoch with one window."""
    return Commit(
        release=release,
        epoch=epoch,
        spec_sha256="c0ffee",
        spec=SPEC,
        released=epoch - 1,
        windows=epoch,
        start=(epoch - 1) * DAY,
        until=epoch * DAY,
        loss=Budget(epsilon=1.0),
        statement="(1, 0)-differential privacy",
        sources=(ReadFile(SECRET, 1234, "2026-01-01T00:00:00Z"),),
        plan=PLAN if epoch == 1 else "",
    )


def attempt_at(store: Store, epoch: int, content: bytes = b"noisy", made: Sequence[str] = MADE) -> Attempt:
    """An attempt that has made its files; each begins with `content`."""
    attempt = store.begin(epoch)
    for name in made:
        told = content + b" " + name.encode()
        if "://" in attempt.folder:
            store._private.write(f"attempts/{attempt.id}/{name}", told)
        else:  # as workers do, who flush nothing
            path = Path(attempt.folder, name)
            path.parent.mkdir(mode=0o700, exist_ok=True)
            path.touch(mode=0o600)
            path.write_bytes(told)
    return attempt


def released(store: Store, epoch: int, content: bytes = b"noisy", made: Sequence[str] = MADE) -> Commit:
    """Commit and show one more epoch."""
    commit = store.commit(attempt_at(store, epoch, content, made), record(epoch), planned(made))
    store.show()
    return commit


def verify(store: Store, commits: Sequence[Commit]) -> None:
    """Check that every file of these epochs exists and is complete."""
    for commit in commits:
        for content, digest in zip(store._public.read_all([*commit.files]), commit.files.values(), strict=True):
            assert content is not None
            assert hashlib.sha256(content).hexdigest() == digest.sha256


def public_side(commits: Sequence[Commit], contents: Sequence[bytes], made: Sequence[str] = MADE) -> dict[str, bytes]:
    """Every byte that must be public once these epochs are shown, whose files begin with `contents`."""
    files = {
        f"{name.removesuffix('.parquet')}-{commit.attempt}.parquet": content + b" " + name.encode()
        for commit, content in zip(commits, contents, strict=True)
        for name in made
        if name.startswith(("nodes/", "estimates/"))
    }
    return {
        **files,
        "manifest.json": manifest_json(RELEASE, commits, [commit.files for commit in commits]),
        "spec.yaml": public_spec(SPEC).encode(),
        "plan.json": PLAN.encode(),
    }
