"""Archives of classes: a cluster writes what it lacks, the next one uses it, and a killed process leaves nothing."""

from pathlib import Path

import pytest

from templates.flink.classes import Archives


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "java-17"))


def test_the_second_cluster_uses_what_the_first_has_written(tmp_path: Path) -> None:
    first = Archives(tmp_path)
    *_, write = first.options("jobs", "a.jar")
    Path(write.removeprefix("-XX:ArchiveClassesAtExit=")).write_bytes(b"classes")
    first.keep("jobs")

    (use,) = Archives(tmp_path).options("jobs", "a.jar")

    assert Path(use.removeprefix("-XX:SharedArchiveFile=")).read_bytes() == b"classes"


def test_other_jars_another_java_and_another_process_have_other_archives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archives = Archives(tmp_path)
    places = set()
    for java, name, jars in (
        ("java-17", "jobs", "a.jar"),
        ("java-17", "jobs", "b.jar"),
        ("java-21", "jobs", "a.jar"),
        ("java-17", "taskmanager", "a.jar"),
    ):
        monkeypatch.setenv("JAVA_HOME", str(tmp_path / java))
        archives.options(name, jars)
        places.add(archives.missing[name])

    assert len(places) == 4


def test_without_a_written_archive_nothing_is_kept(tmp_path: Path) -> None:
    archives = Archives(tmp_path)
    archives.options("jobs", "a.jar")
    archives.keep("jobs")
    archives.keep("workers")

    assert not (tmp_path / "cache").exists()


def test_a_folder_with_blanks_has_no_archive(tmp_path: Path) -> None:
    assert Archives(tmp_path / "my project").options("jobs", "a.jar") == []
