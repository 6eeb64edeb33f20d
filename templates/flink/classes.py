"""Archives of the classes that Java's processes of a cluster have loaded (class data sharing).

A process that maps an archive need not read, check and link these classes again: a small first job of a new cluster
takes two thirds of Java's processor time. The first cluster writes the archives when it ends, and later ones use them.
An archive holds classes and no data. Java ignores one that is of another version of Java or of the jars.
"""

import hashlib
import os
import shutil
from dataclasses import dataclass, field
from pathlib import Path

from templates.flink.distribution import cache

SECONDS = 60.0
"""Time in which a process must write its archive when it ends; it takes about five seconds on an idle machine."""


@dataclass(slots=True)
class Archives:
    """Archives of one cluster.

    Attributes:
        folder: Folder in which processes write archives.
        missing: Places of archives that processes write, by the names of the processes.
    """

    folder: Path
    missing: dict[str, Path] = field(default_factory=dict)

    def options(self, name: str, class_path: str) -> list[str]:
        """Return Java's options with which a process uses its archive, or writes it when it ends.

        Args:
            name: Name of the process.
            class_path: Jars of the process, or folders that hold them.
        """
        kept, draft = _place(name, class_path), self._draft(name)
        if any(character.isspace() for character in f"{kept}{draft}"):  # Flink's scripts split options there
            return []
        if kept.exists():
            return [f"-XX:SharedArchiveFile={kept}"]
        self.missing[name] = kept
        return ["-XX:+IgnoreUnrecognizedVMOptions", f"-XX:ArchiveClassesAtExit={draft}"]  # Java 11 cannot do it

    def keep(self, name: str) -> None:
        """Keep the archive that a process has written, if it has ended by itself."""
        kept, draft = self.missing.get(name), self._draft(name)
        if kept is None or not draft.exists():
            return
        kept.parent.mkdir(parents=True, exist_ok=True)
        copy = kept.with_suffix(f".{os.getpid()}")
        shutil.move(draft, copy)
        copy.rename(kept)

    def _draft(self, name: str) -> Path:
        return self.folder / f"{name}.jsa"


def _place(name: str, class_path: str) -> Path:
    home, found = os.environ.get("JAVA_HOME"), shutil.which("java")
    java = Path(home, "bin/java") if home else Path(found or "java")
    digest = hashlib.sha256(f"{java.resolve()} {class_path}".encode()).hexdigest()
    return cache() / f"classes-{digest[:16]}" / f"{name}.jsa"
