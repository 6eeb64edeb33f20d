"""The witness of a release, compared with a public folder by a reader who has nothing else.

A line of the witness holds the digest of an epoch's public record, and the digest of the line before. The manifest has
these records, with two exceptions: it names the files of a compaction instead of those of its epochs, and of the facts
for readers (`Commit.disclosure`) it has the last ones only. Epochs for which this matters are counted as not tested.
"""

import re
from collections.abc import Sequence
from dataclasses import replace

from pipelines.audit.findings import LayerResult
from pipelines.published.release import Published
from pipelines.store.commit import RELEASE, Commit
from pipelines.store.witness import lines_of, witness_at

FIRST = re.compile(rb'\{"release": "(?P<id>[0-9a-f]{1,64})", "epoch": 1, ')
COMMIT = re.compile(r'"commit": "[0-9a-f]{64}"')


def check_witness(release: Published, path: str) -> LayerResult:
    """Compare the epochs of a public folder with a witness.

    Args:
        release: The public folder.
        path: The witness, as `output.witness` of a spec names it.

    Raises:
        RefusedError: The witness is unavailable.
    """
    lines = witness_at(path).read().splitlines(keepends=True)
    lines = [line for line in lines if line.endswith(b"\n")]  # a run that is killed leaves a part of a line
    epochs = release.epochs
    needed = max((epoch.epoch for epoch in epochs if epoch.witnessed), default=0)
    faults = []
    if len(lines) > len(epochs):
        faults.append(
            f"the witness records {len(lines)} epochs, and the folder has {len(epochs)}: the folder is an older copy"
        )
    if len(lines) < needed:
        faults.append(f"the witness ends after epoch {len(lines)}, and epoch {needed} states that a witness has it")
    wrong, tested = _compared(epochs, lines)
    if wrong:
        faults.append(f"line {wrong} of the witness is not of epoch {wrong}")
    known = min(len(lines), len(epochs))
    return LayerResult(
        name="witness",
        question="Is the folder what the witness records, and not an older copy?",
        tried={"lines": len(lines), "epochs with their digest": tested},
        faults=tuple(faults),
        untested=(
            (f"{known - tested} epochs: the manifest no longer has their files or the facts that they stated.",)
            if known > tested and not wrong
            else ()
        ),
    )


def _compared(epochs: Sequence[Commit], lines: Sequence[bytes]) -> tuple[int, int]:
    """Return the number of the first wrong line (0: all are right), and the number of epochs with their digest."""
    begin = FIRST.match(lines[0]) if lines else None
    if lines and begin is None:
        return 1, 0
    release = begin["id"].decode() if begin else ""
    joined = max((1 + one.epoch for one in epochs if not one.files), default=0)  # the last one has all files
    tested, unknown = 0, 0
    for epoch, line in zip(epochs, lines, strict=False):
        before = lines[: epoch.epoch - 1]
        (with_facts,) = lines_of(RELEASE, [epoch], release, before)
        (without,) = lines_of(RELEASE, [replace(epoch, disclosure={})], release, before)
        if line in (with_facts, without):
            tested += 1
            unknown = 0 if line == with_facts else unknown  # epochs before this one may have stated other facts
        elif epoch.epoch > joined and not unknown:
            unknown = epoch.epoch
        if COMMIT.sub("", line.decode(errors="replace")) != COMMIT.sub("", without.decode()):
            return epoch.epoch, tested
    return unknown, tested
