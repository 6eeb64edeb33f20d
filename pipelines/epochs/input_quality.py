"""Whether what was read is good enough to be used."""

from transforms.common.errors import InputError
from transforms.sources.diagnostics import Diagnosis

MOST_REASONS = 10


def refuse_unusable(
    diagnosis: Diagnosis, shrunk: list[str], *, share: float, key: str, undone: str, folder: str
) -> None:
    """End a run if more of its input is unusable than is allowed.

    Args:
        shrunk: what was found of snapshots that have lost too many rows.
        share: of rows that may be unusable, as `key` says.
        undone: what was therefore not done.
        folder: where the diagnostics are.

    Raises:
        InputError: a line for each problem.
    """
    problems = [f"{file}: {reason}" for file, reason in diagnosis.files]
    if diagnosis.dead > share * diagnosis.rows:
        problems += [
            f"{file}: row {row}: {reason}" + (f" (and {count - 1} more such rows)" if count > 1 else "")
            for file, reason, row, count in diagnosis.reasons[:MOST_REASONS]
        ]
        problems.append(
            f"{undone}: {diagnosis.dead} of {diagnosis.rows} rows cannot be used and {key} allows a share of "
            f"{share:g}; all of them are listed in {folder}/dead_letters.parquet"
        )
    elif problems:
        problems.append(f"{undone}: a file that cannot be read is never skipped")
    elif shrunk:
        problems = [*shrunk, f"{undone}: a snapshot that has lost so many rows may not be whole"]
    if problems:
        raise InputError("\n".join(problems))
