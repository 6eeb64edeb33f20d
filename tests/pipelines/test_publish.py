"""Publishing: all of an attempt or none of it, once, whatever fails on the way."""

import hashlib
import json
import stat
from pathlib import Path

import pytest

from pipelines import publish as publishing
from pipelines.job import plan_of, timeline_of
from pipelines.publish import COMMITTED, Attempt, manifest_of, publish, show
from pipelines.spec import Spec, load
from tests.e2e.specs import contents, write_spec
from transforms.errors import RefusedError


@pytest.fixture
def spec(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Spec:
    monkeypatch.chdir(tmp_path)
    return load(write_spec(tmp_path))


def attempt_of(spec: Spec, content: bytes = b"noisy") -> Attempt:
    """An attempt that has made two files of nodes and one of estimates."""
    attempt = Attempt.begin(spec.output.private)
    for name in ("nodes/a-0.parquet", "nodes/b-0.parquet", "estimates/a-0.parquet"):
        path = Path(attempt.folder, name)
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content + name.encode())
    return attempt


def published(spec: Spec, attempt: Attempt) -> list[str]:
    return publish(spec, plan_of(spec), timeline_of(spec, 2**62), attempt)


def test_an_attempt_is_published_under_its_own_names_with_a_manifest_that_lists_it(spec: Spec) -> None:
    attempt = attempt_of(spec)

    paths = published(spec, attempt)

    public = contents(Path("public"))
    manifest = manifest_of("public")
    assert manifest is not None
    assert manifest == json.loads(public.pop("manifest.json"))
    assert public.pop("spec.yaml") == Path("spec.yaml").read_bytes()
    assert sorted(public) == [
        f"estimates/a-0-{attempt.name}.parquet",
        f"nodes/a-0-{attempt.name}.parquet",
        f"nodes/b-0-{attempt.name}.parquet",
    ]
    assert manifest["files"] == {name: hashlib.sha256(content).hexdigest() for name, content in public.items()}
    assert sorted(paths) == [f"public/{name}" for name in sorted(public)]
    assert (manifest["attempt"], manifest["spec_sha256"], manifest["windows"]) == (attempt.name, spec.sha256, 5)
    assert "(1, 0)-differential privacy" in manifest["statement"]


def test_a_second_attempt_loses_and_the_first_keeps_every_byte(spec: Spec) -> None:
    published(spec, attempt_of(spec, b"first"))
    before = contents(Path("public"))

    with pytest.raises(RefusedError, match="another run has published this release; nothing of this run was kept"):
        published(spec, attempt_of(spec, b"second"))

    assert contents(Path("public")) == before


@pytest.mark.parametrize("writes", range(3))
def test_a_copy_that_fails_half_way_leaves_no_file(spec: Spec, monkeypatch: pytest.MonkeyPatch, writes: int) -> None:
    """A noisy value that stays behind would be a second draw for its node once the run is repeated."""
    write = publishing._write
    done: list[str] = []

    def fail(path: str, content: bytes) -> None:
        write(path, content[: len(content) // 2] if len(done) == writes else content)
        if len(done) == writes:
            raise OSError(28, "No space left on device")
        done.append(path)

    monkeypatch.setattr(publishing, "_write", fail)

    with pytest.raises(OSError, match="No space left"):
        published(spec, attempt_of(spec))

    assert contents(Path("public")) == {}
    assert manifest_of("public") is None


def test_what_could_not_be_copied_is_published_later_from_the_same_draw(
    spec: Spec, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    attempt = attempt_of(spec, b"first")
    with monkeypatch.context() as patched:
        patched.setattr(publishing, "_write", full)
        with pytest.raises(OSError, match="No space left"):
            published(spec, attempt)
    committed = manifest_of("private", COMMITTED)
    assert committed is not None

    with pytest.raises(RefusedError, match="another run has published this release"):
        published(spec, attempt_of(spec, b"second"))
    assert contents(Path("public")) == {}

    show(spec, committed)
    files = {name: content for name, content in contents(Path("public")).items() if "/" in name}
    assert sorted(files) == sorted(committed["files"])
    assert all(content.startswith(b"first") for content in files.values())


def test_showing_again_rewrites_no_file_that_stands(spec: Spec, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two runs may finish one release side by side: neither may touch what the other has shown."""
    published(spec, attempt_of(spec))
    committed = manifest_of("private", COMMITTED)
    assert committed is not None
    written: list[str] = []
    monkeypatch.setattr(publishing, "_write", lambda path, _: written.append(path))

    with pytest.raises(RefusedError, match="another run has published this release"):
        show(spec, committed)

    assert written == []
    assert {name for name in contents(Path("public")) if "/" in name} == set(committed["files"])


def test_a_committed_draw_that_is_lost_is_never_drawn_again(spec: Spec) -> None:
    attempt = attempt_of(spec)
    published(spec, attempt)
    attempt.end()
    for path in Path("public").rglob("*.*"):
        path.unlink()
    committed = manifest_of("private", COMMITTED)
    assert committed is not None

    with pytest.raises(
        RefusedError, match="restore the public folder, since a new release would spend a second budget"
    ):
        show(spec, committed)

    assert contents(Path("public")) == {}


@pytest.mark.parametrize("content", ["", "{", '{"version": 99}', "[]", "null"])
def test_a_manifest_that_cannot_be_understood_is_never_taken_for_none(tmp_path: Path, content: str) -> None:
    (tmp_path / "manifest.json").write_text(content)

    with pytest.raises(
        RefusedError, match="not a manifest of this version; restore it, or release under other output folders"
    ):
        manifest_of(str(tmp_path))


def test_there_is_no_manifest_where_nothing_was_published(tmp_path: Path) -> None:
    assert manifest_of(str(tmp_path / "public")) is None


def test_attempts_have_folders_of_their_own_on_the_private_side(spec: Spec) -> None:
    first, second = attempt_of(spec), attempt_of(spec)

    assert first.name != second.name
    assert stat.S_IMODE(Path("private").stat().st_mode) == 0o700

    first.end()
    first.end()
    assert not Path(first.folder).exists()
    assert Path(second.folder).is_dir()
