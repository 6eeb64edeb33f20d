"""`slackwater compact`: merge the published files of a release into a few large ones."""

from dataclasses import dataclass

from pipelines.common.arguments import SpecLike, spec_of
from pipelines.common.value import Value
from pipelines.epochs.failures import failures_kept
from pipelines.epochs.killed import clean
from pipelines.epochs.settled import refuse_another
from pipelines.store.store import store_of
from privacy.counted import counted
from transforms.common.cloud import refuse_unreachable
from transforms.common.errors import RefusedError


@dataclass(frozen=True, slots=True, kw_only=True)
class Compacted(Value):
    """Result of a compaction.

    Attributes:
        release: Name of the release.
        epochs: The first and the last epoch whose files were merged; None if there was nothing to merge.
        files: The new files, by their public names.
        removed: Number of files that were removed.
    """

    release: str
    epochs: tuple[int, int] | None
    files: tuple[str, ...]
    removed: int

    def text(self) -> str:
        """Return the text that `slackwater compact` prints."""
        if self.epochs is None:
            left = f", but {counted(self.removed, 'file')} of an earlier run removed" if self.removed else ""
            return f"{self.release}: nothing to compact{left}"
        first, last = self.epochs
        return (
            f"{self.release}: {counted(last - first + 1, 'epoch')} up to {last} in {counted(len(self.files), 'file')} "
            f"in place of {self.removed:,}, with the same rows"
        )


def compact(spec: SpecLike) -> Compacted:
    """Merge small published files into larger ones. Published values do not change.

    Args:
        spec: The path of a spec, or what `load` returns.

    Raises:
        RefusedError: Nothing is published yet, or the folders hold another release.
    """
    spec = spec_of(spec)
    refuse_unreachable(spec.output.folders)
    with failures_kept(spec, "compact", done="no published value is lost or changed; compact again"):
        store = store_of(spec.output)
        history = store.open()
        if history is None:
            raise RefusedError(f"{spec.output.public}: nothing is published there yet; run the release first")
        refuse_another(spec, history.commits)
        clean(store)
        done = store.compact()
    made = done.made
    return Compacted(
        release=spec.release,
        epochs=None if made is None else (made.first, made.last),
        files=() if made is None else tuple(made.files),
        removed=done.removed,
    )
