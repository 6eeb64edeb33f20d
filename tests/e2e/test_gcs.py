"""Whole runs from and to gs://, against two servers on loopback that speak its protocol.

One does all that Beam asks of it, but takes no notice of preconditions; the other honours these, but cannot delete
several objects at once: more of it, and races, are in test_store_races.
"""

import hashlib
import json
from collections.abc import Iterator
from io import BytesIO
from itertools import pairwise
from pathlib import Path

import apache_beam.internal.gcp.auth
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from gcp_storage_emulator.server import create_server
from google.cloud import storage

from benchmarks.crash.server import strict_gcs
from pipelines.spec.public import public_spec
from tests.e2e.specs import DAY, START, CommandLine, changelog, write, write_spec

DIAGNOSTICS = ("private/diagnostics/dead_letters.parquet", "private/diagnostics/read.json")
COMMITTED = "private/commits/000001.json"
SELF = "private/releases/self.json"

LOCAL = (("data/*.parquet", "local/*.parquet"),)
REMOTE = (
    ("data/*.parquet", "gs://in/data/*.parquet"),
    ("public: public", "public: gs://out/public"),
    ("private: private", "private: gs://out/private"),
)


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[storage.Client]:
    """The server that does all that Beam asks of it, with the buckets `in` and `out`."""
    # Else Beam looks for credentials of this machine first, for many seconds.
    monkeypatch.setattr(apache_beam.internal.gcp.auth._Credentials, "_credentials_init", True)
    server = create_server("127.0.0.1", 0, in_memory=True)
    server.start()
    try:
        monkeypatch.setenv("STORAGE_EMULATOR_HOST", f"http://127.0.0.1:{server._api._httpd.server_address[1]}")
        yield with_buckets(storage.Client())
    finally:
        server.stop()


@pytest.fixture
def strict() -> Iterator[storage.Client]:
    """The server that honours preconditions, with the same buckets."""
    with strict_gcs() as client:
        yield with_buckets(client)


def with_buckets(client: storage.Client) -> storage.Client:
    for bucket in ("in", "out"):
        client.create_bucket(bucket)
    return client


def upload(client: storage.Client, folder: Path) -> None:
    """The changelog in three files, in the folder `local` and in the bucket `in`."""
    rows = changelog()
    for part in range(3):
        path = write(folder / "local" / f"part-{part}.parquet", rows[part::3])
        client.bucket("in").blob(f"data/{path.name}").upload_from_filename(str(path))


def held(client: storage.Client) -> dict[str, bytes]:
    """All objects of the bucket `out`."""
    return {blob.name: blob.download_as_bytes() for blob in client.list_blobs("out")}


def under(objects: dict[str, bytes], prefix: str) -> dict[str, bytes]:
    return {name.removeprefix(prefix): content for name, content in objects.items() if name.startswith(prefix)}


def test_a_release_in_gs_has_the_files_of_its_manifest(
    bucket: storage.Client, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    upload(bucket, tmp_path)
    write_spec(tmp_path, *REMOTE)
    slackwater = CommandLine(tmp_path, capsys)

    said = slackwater("run", "spec.yaml")

    assert said.code == 0, said.err
    objects = held(bucket)
    public = under(objects, "public/")
    manifest = json.loads(public.pop("manifest.json"))
    assert public.pop("spec.yaml") == public_spec((tmp_path / "spec.yaml").read_text()).encode()
    assert hashlib.sha256(public.pop("plan.json")).hexdigest() == manifest["plan_sha256"]
    (epoch,) = manifest["epochs"]
    assert {name: hashlib.sha256(c).hexdigest() for name, c in public.items()} == {
        name: digest["sha256"] for name, digest in epoch["files"].items()
    }
    assert {name.split("/")[0] for name in public} == {"nodes", "estimates"}
    told = pa.concat_tables(pq.read_table(BytesIO(c)) for name, c in public.items() if name.startswith("estimates/"))
    assert told.num_rows == 2 * 5 * 3  # kinds, windows and wards
    private = {name for name in objects if not name.startswith("public/")}
    own = f"private/attempts/{epoch['attempt']}/"
    assert {name for name in private if not name.startswith(own)} == {*DIAGNOSTICS, COMMITTED, SELF}

    assert "nothing is due" in slackwater("run", "spec.yaml").out
    assert held(bucket) == objects


def test_releases_in_gs_know_of_each_other(
    bucket: storage.Client, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    upload(bucket, tmp_path)
    write_spec(tmp_path, *REMOTE)
    slackwater = CommandLine(tmp_path, capsys)
    assert slackwater("run", "spec.yaml").code == 0

    said = slackwater("run", "spec.yaml", "--new-release", "b", "--json")

    assert json.loads(said.out)["together"]["epsilon"] == 2.0
    (tmp_path / "spec-b.yaml").unlink()  # so that a record alone leads there
    assert json.loads(slackwater("ledger", "spec.yaml", "--json").out)["together"]["epsilon"] == 2.0


def test_the_truth_from_gs_is_the_truth_from_local_files(
    bucket: storage.Client, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    upload(bucket, tmp_path)
    write_spec(tmp_path, *REMOTE)
    write_spec(tmp_path, *LOCAL, name="local.yaml")
    slackwater = CommandLine(tmp_path, capsys)

    there = slackwater("evaluate", "spec.yaml", "--truth", "gs://out/private/truth.parquet")
    here = slackwater("evaluate", "local.yaml", "--truth", "truth.parquet")

    assert (there.code, here.code) == (0, 0), there.err + here.err
    objects = held(bucket)
    assert pq.read_table(BytesIO(objects["private/truth.parquet"])).equals(pq.read_table(tmp_path / "truth.parquet"))
    # Exact sums were written on the way; none of them is left, and nothing is public.
    assert set(objects) == {"private/truth.parquet", *DIAGNOSTICS}


def test_the_truth_is_not_written_to_the_public_side_of_gs(
    bucket: storage.Client, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    upload(bucket, tmp_path)
    write_spec(tmp_path, *REMOTE)

    said = CommandLine(tmp_path, capsys)("evaluate", "spec.yaml", "--truth", "gs://out/public/truth.parquet")

    assert said.code == 2
    assert "inside output.public" in said.err
    assert not under(held(bucket), "public/")


def test_a_release_in_gs_continues_and_none_of_its_objects_changes(
    strict: storage.Client, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    upload(strict, tmp_path)
    write_spec(tmp_path, *REMOTE)
    slackwater = CommandLine(tmp_path, capsys)
    seen: list[dict[str, bytes]] = []
    for night in (1, 2, 4):
        said = slackwater("run", "spec.yaml", f"--until={(START + night * DAY).isoformat()}")
        assert said.code == 0, said.err
        seen.append(held(strict))

    *_, last = seen
    epochs = json.loads(last["public/manifest.json"])["epochs"]
    assert [(epoch["released"], epoch["windows"]) for epoch in epochs] == [(0, 1), (1, 2), (2, 4)]
    assert {name.removeprefix("public/") for name in last if name.startswith("public/")} == {
        "manifest.json",
        "spec.yaml",
        "plan.json",
        *(name for epoch in epochs for name in epoch["files"]),
    }
    for before, after in pairwise(seen):
        kept = {name for name in before if name.startswith(("public/", "private/commits/"))} - {"public/manifest.json"}
        assert {name: after[name] for name in kept} == {name: before[name] for name in kept}
    attempts = {name.split("/")[2] for name in last if name.startswith("private/attempts/")}
    assert attempts == {epoch["attempt"] for epoch in epochs[-2:]}


def test_records_are_sanitised_once_on_gs(bucket, tmp_path, capsys):
    rows = "person,work\n" + "".join(f"{person},none\n" for person in range(9))
    bucket.bucket("in").blob("data/all.csv").upload_from_string(rows)
    (tmp_path / "spec.yaml").write_text(
        "sanitise: survey\n"
        "records: {format: csv, path: gs://in/data/*.csv, entry: person}\n"
        "columns: [{name: work, kind: category, values: [none, full], missing: none, epsilon: 1.0}]\n"
        "output: {public: gs://out/public, private: gs://out/private, format: csv}\n"
    )
    slackwater = CommandLine(tmp_path, capsys)

    first, before = slackwater("sanitise", "spec.yaml"), held(bucket)
    second = slackwater("sanitise", "spec.yaml")

    assert (first.code, first.err) == (0, "")
    assert "nothing new; 9 rows" in second.out
    public = {name: content for name, content in before.items() if name.startswith("public/")}
    assert {name: content for name, content in held(bucket).items() if name.startswith("public/")} == public
    (name,) = [name for name in public if "/records/" in name]
    assert len(public[name].splitlines()) == 10
