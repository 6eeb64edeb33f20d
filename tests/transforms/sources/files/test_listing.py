"""Local files that a pattern matches; none is left out because its folder is unreadable."""

from pathlib import Path

import pytest
from apache_beam.io.filesystems import FileSystems

from tests.rights import plain_rights
from transforms.common.errors import InputError, SpecError
from transforms.sources.files.listing import find, matching

PATTERNS = (
    "*.csv",
    "a.csv",
    "./*.csv",
    "data/*.csv",
    "data/**",
    "data/**.csv",
    "data/**/a.csv",
    "**",
    "*/a.csv",
    "data/*/*/a.csv",
    "link/*.csv",
    "data/",
    "data/?.csv",
    "data/[!a].csv",
    "none/*.csv",
    "none.csv",
    "data/./*.csv",
    "data/a.csv/*",
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("a.csv", ".h.csv", "data/a.csv", "data/b.csv", "data/x/a.csv", "data/x/y/a.csv", "data/ä b.csv"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(name)
    (tmp_path / "link").symlink_to("data")
    (tmp_path / "data/same").symlink_to("x")
    (tmp_path / "data/c.csv").symlink_to("a.csv")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_pattern_matches_the_files_that_beam_matches(folder: Path, pattern: str) -> None:
    """Paths are recorded: a file under another name would be read again."""
    for tried in (pattern, f"{folder}/{pattern}"):
        found = FileSystems.match([tried if "/" in tried else f"./{tried}"])[0].metadata_list
        assert sorted((m.path, m.size_in_bytes, m.last_updated_in_seconds) for m in found) == [
            (file.path, file.size, file.updated) for file in matching((tried,))
        ]


@pytest.mark.parametrize(
    ("closed", "mode", "pattern"),
    [
        ("data", 0o300, "data/*.csv"),
        ("data", 0o300, "data/**.csv"),
        ("data", 0o600, "./*/a.csv"),
        ("data/x", 0o300, "data/**"),
        ("data/x", 0o600, "data/*/a.csv"),
        ("data/x/y", 0o300, "data/**/a.csv"),
        ("data", 0o600, "data/*.csv"),
        ("data", 0o600, "data/a.csv"),
    ],
)
def test_a_folder_that_cannot_be_listed_is_an_error(folder: Path, closed: str, mode: int, pattern: str) -> None:
    (folder / closed).chmod(mode)
    try:
        with plain_rights(), pytest.raises(InputError, match=f"cannot be listed, .*{closed}.*: Permission denied; che"):
            find((pattern,))
    finally:
        (folder / closed).chmod(0o700)


def test_an_unreadable_folder_without_possible_matches_is_ignored(folder: Path) -> None:
    """For example `lost+found` of a disk."""
    (folder / "data/x").chmod(0)
    try:
        with plain_rights():
            assert len(find(("data/*.csv",))) == 4
    finally:
        (folder / "data/x").chmod(0o700)


def test_a_broken_link_is_a_missing_file(folder: Path) -> None:
    (folder / "data/x/a.csv").unlink()
    (folder / "data/x/b.csv").symlink_to("a.csv")

    with pytest.raises(InputError, match=r"data/x/b\.csv: No such file"):
        find(("data/*/*.csv",))
    with pytest.raises(SpecError, match="no file matches"):
        find(("data/*/a.csv",))
