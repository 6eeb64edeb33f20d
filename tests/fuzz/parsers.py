"""Rules for the parsers of specs, conditions and designs on any bytes: a value, or an error that names its place.

No other exception may leave a parser, and no line of an error may be longer than a person reads.
"""

import re
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path

from pipelines.local.spec import load_local
from pipelines.local.survey import read_survey
from pipelines.sanitised.spec import load_sanitise
from pipelines.spec.load import load
from transforms.aggregation.expression import Condition
from transforms.common.errors import SlackwaterError, SpecError

ROOT = Path(__file__).parents[2]

RECORDS = b"""\
sanitise: survey
records: {format: csv, path: records.csv, entry: id}
columns:
  - {name: age, kind: number, min: 0, max: 100, step: 1, epsilon: 1.0}
  - {name: work, kind: category, values: [full, part, other], epsilon: 1.0}
output: {public: public, private: private}
"""

CONDITIONS = (
    b"ward = 'a' AND age >= 18",
    b"coalesce(cost, 0) BETWEEN 1 AND 2.5 OR ward IN ('a', 'b')",
    b"CAST(age AS BIGINT) % 2 = 0 AND NOT starts_with(ward, 'x')",
)


def _files(*patterns: str) -> tuple[bytes, ...]:
    return tuple(path.read_bytes() for pattern in patterns for path in sorted(ROOT.glob(pattern)))


SEEDS: dict[str, tuple[bytes, ...]] = {
    "spec": _files(
        "templates/specs/*.yaml", "examples/*/spec.yaml", "examples/aircraft/*.yaml", "examples/stops/*.yaml"
    ),
    "records": (RECORDS,),
    "survey": _files(
        "examples/employment/survey.yaml", "tests/audit/specs/survey.yaml", "tests/audit/specs/symbols.yaml"
    ),
    "condition": CONDITIONS,
    "design": _files("tests/fuzz/design.json"),
}


def check(target: str, data: bytes) -> bool:
    """Parse the bytes, and check all rules; return whether they were a value.

    Raises:
        AssertionError: A rule is broken.
    """
    if target == "condition":
        return _refused(lambda: Condition.parse(data.decode(errors="replace")), r"where: \S")
    path = _folder() / f"file.{'json' if target == 'design' else 'yaml'}"
    path.write_bytes(data)
    parse: Callable[[Path], object] = {
        "spec": load,
        "records": load_sanitise,
        "survey": load_local,
        "design": lambda one: read_survey(str(one)),
    }[target]
    return _refused(lambda: parse(path), r".*file\.(yaml|json)")


def _refused(parse: Callable[[], object], place: str) -> bool:
    try:
        parse()
    except SpecError as error:
        for line in str(error).split("\n"):
            assert re.match(place, line), f"a line without its place: {line[:200]!r}"
            assert len(line) < 1000, f"a line of {len(line)} characters"
        return False
    except SlackwaterError as error:
        raise AssertionError(f"{type(error).__name__} instead of SpecError") from error
    return True


@cache
def _folder() -> Path:
    # Kept alive until the process ends.
    _folder.kept = tempfile.TemporaryDirectory(prefix="slackwater-fuzz-")  # type: ignore[attr-defined]
    return Path(_folder.kept.name)  # type: ignore[attr-defined]
