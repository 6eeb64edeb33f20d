"""Memory limits as Linux shows them, of both versions of control groups, inside and outside of containers."""

from pathlib import Path

import pytest

from transforms.common.memory import limits

UNLIMITED = 9_223_372_036_854_771_712
"""Value without a limit in version 1."""


def system(root: Path, groups: str, files: dict[str, object]) -> Path:
    """Return a file system with these groups of a process, and these files below /sys/fs/cgroup."""
    for name, content in {"proc/self/cgroup": groups, **{f"sys/fs/cgroup/{n}": c for n, c in files.items()}}.items():
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{content}\n")
    return root


@pytest.mark.parametrize(
    ("groups", "files", "least"),
    [
        ("0::/a/b", {"a/b/memory.max": "max", "a/memory.max": 300}, 300),
        ("0::/a/b", {"a/b/memory.max": 200, "a/memory.max": 300}, 200),
        ("0::/a", {"a/memory.max": "max", "memory.max": 500}, 500),
        ("0::/outside/7", {"memory.max": 100}, 100),
        ("5:cpu:/a\n4:memory:/a/b", {"memory/a/b/memory.limit_in_bytes": 70}, 70),
        ("4:memory:/docker/7", {"memory/memory.limit_in_bytes": 60}, 60),
        (
            "4:cpu,memory:/a\n0::/",
            {"memory/a/memory.limit_in_bytes": 50, "memory/memory.limit_in_bytes": UNLIMITED},
            50,
        ),
        ("1:cpu:/a\n0::/c", {"unified/c/memory.max": 40}, 40),
    ],
)
def test_the_smallest_limit_of_all_groups_above_a_process_counts(
    tmp_path: Path, groups: str, files: dict[str, object], least: int
) -> None:
    assert min(limits(system(tmp_path, groups, files))) == least


@pytest.mark.parametrize(
    ("groups", "files"),
    [("0::/a", {"a/memory.max": "max"}), ("5:cpu:/a", {"memory/a/memory.limit_in_bytes": 70}), ("0::/gone", {})],
)
def test_no_limit_is_found_if_none_applies(tmp_path: Path, groups: str, files: dict[str, object]) -> None:
    assert list(limits(system(tmp_path, groups, files))) == []


def test_a_system_without_control_groups_has_no_limits(tmp_path: Path) -> None:
    assert list(limits(tmp_path)) == []
