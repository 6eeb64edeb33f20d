"""Public folders whose files contradict each other are refused with the file that does; each check of a reader once."""

import hashlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pipelines.published.others import of_other_kind
from pipelines.published.release import Published, asked, naming, published
from tests.pipelines.spec_text import changed
from tests.releases.continued import unpacked
from transforms.common.errors import InputError, RefusedError, SpecError

Change = Callable[[dict[str, Any]], object]


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    release = Path(__file__).parents[2] / "releases/0.3.0/everything"
    return unpacked(release, tmp_path_factory.mktemp("kept"))


@pytest.fixture
def folder(kept: Path) -> Iterator[Path]:
    """The public folder; a test may change its files at the top."""
    public = kept / "public"
    before = {path: path.read_bytes() for path in public.iterdir() if path.is_file()}
    yield public
    for path, content in before.items():
        path.write_bytes(content)


def edit(folder: Path, change: Change, name: str = "manifest.json") -> None:
    """Change a document, and its digest in the manifest."""
    document = json.loads((folder / name).read_text())
    change(document)
    content = json.dumps(document).encode()
    (folder / name).write_bytes(content)
    if name == "plan.json":
        edit(folder, lambda manifest: manifest.update(plan_sha256=hashlib.sha256(content).hexdigest()))


def last(manifest: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = manifest["epochs"][-1]
    return found


def later(manifest: dict[str, Any]) -> None:
    """The windows of the last epoch end a microsecond later than the schedule says."""
    manifest["until"] = last(manifest)["until"] = last(manifest)["until"] + 1


def centuries_later(manifest: dict[str, Any]) -> None:
    manifest["until"] = last(manifest)["until"] = 10**18


def centuries_earlier(manifest: dict[str, Any]) -> None:
    manifest["start"] = manifest["epochs"][0]["start"] = -(10**18)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "told"),
    [
        (later, "plan.json: of other queries, windows or privacy than"),
        (lambda manifest: manifest["loss"].update(epsilon=9.0), "plan.json: of other queries, windows or privacy"),
        (lambda manifest: manifest["loss"].update(delta=0.5), "plan.json: of other queries, windows or privacy"),
        (centuries_later, "manifest.json: not a manifest that this version of the program understands"),
        (centuries_earlier, "manifest.json: not a manifest that this version of the program understands"),
        (lambda manifest: manifest.update(records=3), "sanitised records; the commands for them are"),
        (lambda manifest: manifest.update(more=3), "manifest.json: not a manifest"),
        (lambda manifest: manifest.update(epochs=[]), "manifest.json: not a manifest"),
    ],
)
def test_a_manifest_that_does_not_fit_is_refused(folder: Path, change: Change, told: str) -> None:
    assert Published(str(folder)).windows
    edit(folder, change)

    with pytest.raises((RefusedError, SpecError), match=told):
        Published(str(folder))


def test_a_plan_or_spec_that_does_not_fit_is_refused(folder: Path) -> None:
    spec = (folder / "spec.yaml").read_text()
    (folder / "spec.yaml").write_text(spec.replace("covers", "lovers"))
    with pytest.raises(RefusedError, match="of other queries, windows or privacy"):
        Published(str(folder))
    (folder / "spec.yaml").write_text(spec)
    plan = (folder / "plan.json").read_text()
    (folder / "plan.json").write_text(f"{plan} ")
    with pytest.raises(RefusedError, match=r"plan\.json: not what the manifest says"):
        Published(str(folder))
    (folder / "plan.json").write_text(plan)

    for change in (lambda plan: plan.update(version=99), lambda plan: plan.pop("queries")):
        edit(folder, change, "plan.json")
        with pytest.raises(RefusedError, match=r"plan\.json: .*; use the version of the program that made the release"):
            Published(str(folder))


def test_a_query_without_files_is_refused(folder: Path) -> None:
    def without(manifest: dict[str, Any]) -> None:
        for epoch in manifest["epochs"]:
            epoch["files"] = {name: digest for name, digest in epoch["files"].items() if "/covers-" not in name}

    edit(folder, without)
    release = Published(str(folder))
    (query,) = asked(release.spec, ["covers"])

    with pytest.raises(RefusedError, match=r"manifest\.json: names no numbers of query covers"):
        release.estimates(query)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["covers-net-net-00000", "covers-net-more", "covers-left-00000", "recovers-net-00000"])
def test_a_file_of_another_query_or_family_is_not_read(folder: Path, name: str) -> None:
    """It does not exist, so that reading it would be an error."""
    whole = Published(str(folder))
    (query,) = asked(whole.spec, ["covers"])

    def with_another(manifest: dict[str, Any]) -> None:
        epoch = last(manifest)
        epoch["files"][f"estimates/{name}-{epoch['attempt']}.csv"] = next(iter(epoch["files"].values()))

    edit(folder, with_another)

    assert Published(str(folder)).estimates(query).equals(whole.estimates(query))


def test_rows_of_windows_that_the_manifest_does_not_list_are_left_out(folder: Path) -> None:
    """Files that a compaction has joined may hold them."""
    whole = Published(str(folder))
    (query,) = asked(whole.spec, ["covers"])
    before = whole.estimates(query)
    made: list[Path] = []

    def without_the_last(manifest: dict[str, Any]) -> None:
        gone = manifest["epochs"].pop()
        kept = last(manifest)
        manifest.update(windows=kept["windows"], until=kept["until"])
        for name, digest in gone["files"].items():
            if name.startswith("estimates/covers-"):
                other = name.replace("-00000-", "-00009-").replace(gone["attempt"], kept["attempt"])
                kept["files"][other] = digest
                made.append(folder / other)
                made[-1].write_bytes((folder / name).read_bytes())

    edit(folder, without_the_last)
    found = Published(str(folder)).estimates(query)
    for path in made:
        path.unlink()

    ends = found["window_end"].to_pylist()
    assert len(made) > 0
    assert 0 < len(ends) == sum(end <= max(ends) for end in before["window_end"].to_pylist()) < before.num_rows


def test_a_file_that_a_compaction_replaces_is_read_from_the_new_manifest(folder: Path) -> None:
    """Both readers keep the old manifest. For the second one, the new manifest has the file under another name."""
    lost, replaced = Published(str(folder)), Published(str(folder))
    (query,) = asked(lost.spec, ["covers"])
    before = lost.estimates(query).num_rows
    name = next(
        name
        for name in last(json.loads((folder / "manifest.json").read_text()))["files"]
        if "estimates/covers-" in name
    )
    other = name.replace("-00000-", "-00009-")

    def renamed(manifest: dict[str, Any]) -> None:
        last(manifest)["files"][other] = last(manifest)["files"].pop(name)

    (folder / name).rename(folder / other)
    try:
        with pytest.raises(RefusedError, match="missing; give the public folder"):
            lost.estimates(query)
        edit(folder, renamed)
        assert replaced.estimates(query).num_rows == before
    finally:
        (folder / other).rename(folder / name)


@pytest.mark.parametrize(
    "error", [ZeroDivisionError, KeyError, MemoryError, RecursionError, TypeError, ValueError, InputError]
)
def test_a_computation_that_fails_names_the_folder(error: type[Exception]) -> None:
    with pytest.raises(RefusedError, match=r"^public: .*; get the folder again"), naming("public"):
        raise error("x")


def test_a_spec_of_which_nothing_is_published_says_so(
    kept: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "spec.yaml").write_text((kept / "spec.yaml").read_text())
    monkeypatch.chdir(tmp_path)

    with pytest.raises(
        RefusedError, match=r"spec\.yaml: nothing is published yet in public; .*, if this is the folder"
    ):
        published("spec.yaml")
    absolute = changed("public: public", f"public: {tmp_path}/public", (tmp_path / "spec.yaml").read_text())
    (tmp_path / "spec.yaml").write_text(absolute)
    with pytest.raises(RefusedError, match=r"nothing is published yet in /.* publishes due windows$"):
        published("spec.yaml")
    (tmp_path / "empty").mkdir()
    with pytest.raises(RefusedError, match=r"empty/manifest\.json: missing; give the public folder"):
        published("empty")


def test_another_kind_is_found_at_a_public_folder(folder: Path, tmp_path: Path) -> None:
    assert of_other_kind("show", str(folder)) is None
    (tmp_path / "manifest.json").write_text('{"records": 3}')
    assert of_other_kind("show", str(tmp_path)).__module__ == "pipelines.sanitised.show"
    assert of_other_kind("answer", str(tmp_path)) is None
    for content in ("{", "3"):
        (tmp_path / "manifest.json").write_text(content)
        assert of_other_kind("show", str(tmp_path)) is None
