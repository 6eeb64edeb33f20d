"""Search for errors of DuckDB that TRY does not catch, over all that a `where` condition may hold.

    python -m tests.fuzz.where_errors

Each call of an allowed function, operator or cast is evaluated over a table of unusual values of its arguments' types,
as a condition of a spec is: with columns for all arguments, and with a constant for each argument in turn. A child
process works on the calls. If a call takes too long or ends the child, it is reported, and a new child does the rest.
Calls that rules or types refuse are not counted. One argument has every type, two and three have a selection.
"""

import json
import os
import select
import signal
import sys
from collections import Counter
from collections.abc import Iterator
from itertools import product

import duckdb
import pyarrow as pa

from transforms.aggregation import expression
from transforms.aggregation.expression import Condition
from transforms.aggregation.expression_rules import _FUNCTIONS
from transforms.common.errors import SpecError

PATIENCE = 10.0
"""Seconds for one call, on a machine that does other work too."""

_SMALL = ["0", "1", "-1", "7", "100"]
_DATES = ["1970-01-01", "2024-02-29", "0001-01-01", "infinity", "-infinity", "5000-12-31"]
_MOMENTS = [*_DATES, "290309-12-22 (BC) 00:00:00", "294247-01-10 04:00:54.775806", "2024-03-31 02:30:00.000001"]
_TEXTS = ["", "a", "%", "_", "\\", "a\\", "[", "(a", "a{1001}", "é", "😀", "e\u0301", "\0", "1", "-1", "1e400", "NaN"]
_TEXTS += ["2024-02-29", "12:00", "year", "UTC", "%Y", "%", "%q", "c", "gi", "true", "x" * 3_000]

VALUES: dict[str, list[str]] = {
    "BOOLEAN": ["true", "false"],
    "TINYINT": [*_SMALL, "127", "-128"],
    "SMALLINT": [*_SMALL, "32767", "-32768"],
    "INTEGER": [*_SMALL, "2147483647", "-2147483648"],
    "BIGINT": [*_SMALL, "9223372036854775807", "-9223372036854775808", "4294967296", "1000000000000"],
    "HUGEINT": [*_SMALL, str(2**127 - 1), str(-(2**127)), str(2**64)],
    "UTINYINT": ["0", "1", "255"],
    "USMALLINT": ["0", "1", "65535"],
    "UINTEGER": ["0", "1", "4294967295"],
    "UBIGINT": ["0", "1", "18446744073709551615", "9223372036854775808"],
    "FLOAT": ["0", "-0", "1", "-1", "0.5", "nan", "inf", "-inf", "3e38", "-3e38", "1e-45"],
    "DOUBLE": ["0", "-0", "1", "-1", "0.5", "nan", "inf", "-inf", "1.7e308", "-1.7e308", "5e-324", "1e19", "-1e19"],
    "DECIMAL(18,3)": ["0", "1", "-1", "999999999999999.999", "-999999999999999.999", "0.001"],
    "DECIMAL(38,0)": ["0", "1", "-1", "9" * 38, "-" + "9" * 38],
    "DECIMAL(4,4)": ["0", "0.9999", "-0.9999"],
    "VARCHAR": _TEXTS,
    "DATE": [*_DATES, "5877642-06-25 (BC)", "5881580-07-10", "10000-01-01"],
    "TIME": ["00:00:00", "23:59:59.999999", "24:00:00", "12:30:00"],
    "TIMESTAMP": _MOMENTS,
    "TIMESTAMPTZ": _MOMENTS,
    "INTERVAL": [
        "0 days",
        "1 month",
        "-1 month",
        "2147483647 months",
        "-2147483648 months",
        "2147483647 days",
        "-2147483648 days",
        "9223372036854775807 microseconds",
        "-9223372036854775807 microseconds",
        "1 month -1 day 1 second",
    ],
}
_ALIKE = {"SMALLINT", "UTINYINT", "USMALLINT", "UINTEGER", "DECIMAL(4,4)"}
"""Types used only for calls of one argument, since other types of their kind represent them in longer calls."""

_GENERIC = ("BIGINT", "HUGEINT", "DOUBLE", "DECIMAL(38,0)", "VARCHAR", "TIMESTAMPTZ", "INTERVAL", "BOOLEAN")
"""Types of three arguments."""

_MOMENTARY = ("DATE", "TIME", "TIMESTAMP", "TIMESTAMPTZ", "VARCHAR")

PARTS = ["year", "month", "day", "decade", "century", "millennium", "microseconds", "milliseconds", "second", "minute"]
PARTS += ["hour", "dow", "isodow", "week", "isoyear", "yearweek", "doy", "era", "timezone", "timezone_hour"]
PARTS += ["timezone_minute", "epoch", "julian", "quarter"]
ZONES = ["UTC", "Europe/Berlin", "America/New_York", "Asia/Kathmandu", "Pacific/Apia", "Etc/GMT+12"]

_PREFIX, _INFIX = ("+", "-"), ("+", "-", "*", "/", "//", "%", "**", "^", "||", "~~", "!~~", "~~*", "!~~*", "~~~")
_COMPARISONS = ("=", "IN")
_ESCAPES = {"like_escape": "LIKE", "not_like_escape": "NOT LIKE", "ilike_escape": "ILIKE"}
_ESCAPES["not_ilike_escape"] = "NOT ILIKE"

Call = tuple[str, tuple[str, ...]]
"""A condition's text with {} for each argument, and the types of these."""


def calls() -> Iterator[Call]:
    """Yield the calls, not all of which have fitting types."""
    types = tuple(VALUES)
    for one in types:
        for name in _PREFIX:
            yield f"({name}{{}}) IS NULL", (one,)
        yield from ((f"CAST({{}} AS {other}) IS NULL", (one,)) for other in types)
        yield from ((f"date_part('{part}', {{}}) IS NULL", (one,)) for part in PARTS)
        yield from ((f"date_trunc('{part}', {{}}) IS NULL", (one,)) for part in PARTS)
        yield from ((f"timezone('{zone}', {{}}) IS NULL", (one,)) for zone in ZONES)
        for how, pattern in product(_ESCAPES.values(), ("%", "a!%", "_!!", "")):
            yield f"{{}} {how} '{pattern}' ESCAPE '!'", (one,)
    paired = [one for one in types if one not in _ALIKE]
    for pair in product(paired, paired):
        yield from ((f"({{}} {name} {{}}) IS NULL", pair) for name in _INFIX)
        yield from ((f"({{}} {name} ({{}})) IS NULL", pair) for name in _COMPARISONS)
    for pair in product(_MOMENTARY, _MOMENTARY):
        yield from ((f"date_diff('{part}', {{}}, {{}}) IS NULL", pair) for part in PARTS)
    taken = _counts()
    special = {*_INFIX, *_ESCAPES, "date_part", "date_trunc", "date_diff", "datediff"}
    for name in sorted(_FUNCTIONS - special):
        for count in sorted(taken.get(name, {1, 2, 3}) & {1, 2, 3}):
            of_each = (types, paired, _GENERIC)[count - 1]
            yield from ((_of(name, count), of) for of in product(of_each, repeat=count))
    for of in product(_GENERIC, repeat=3):
        yield "({} BETWEEN {} AND {}) IS NULL", of
        yield "(CASE WHEN {} THEN {} ELSE {} END) IS NULL", of
        yield "COALESCE({}, {}, {}) IS NULL", of


def _counts() -> dict[str, set[int]]:
    """Return the numbers of arguments of each function of DuckDB: all if it takes any number, none for other names."""
    rows = duckdb.connect().sql(
        "SELECT function_name, len(parameters), varargs FROM duckdb_functions() WHERE function_type = 'scalar'"
    )
    counts: dict[str, set[int]] = {}
    for name, count, more in rows.fetchall():
        counts.setdefault(name, set()).update({1, 2, 3} if more else {count})
    return counts


def _of(name: str, count: int) -> str:
    return f"{name}({', '.join(['{}'] * count)}) IS NULL"


def conditions(call: Call) -> Iterator[str]:
    """Yield the conditions of a call: all columns, then a constant for each argument in turn."""
    text, types = call
    columns = [f'"c{place}"::{type_}' for place, type_ in enumerate(types)]
    yield text.format(*columns)
    if len(types) > 1 and not text.startswith(tuple(f"({{}} {name} (" for name in _COMPARISONS)):
        most = 4 if len(types) == 3 and types[0] != "VARCHAR" else None
        for place, type_ in enumerate(types):
            for value in VALUES[type_][:most]:
                constant = f"'{value}'::{type_}"
                yield text.format(*columns[:place], constant, *columns[place + 1 :])


def table(types: tuple[str, ...]) -> pa.Table:
    """Return all combinations of the values of these types, as texts in columns c0, c1, ..."""
    most = 9 if len(types) == 3 else None
    rows = [*product(*([*VALUES[type_][:most], None] for type_ in types))]
    return pa.table(
        {f"c{place}": pa.array(column, pa.string()) for place, column in enumerate(zip(*rows, strict=True))}
    )


def outcomes(call: Call) -> Counter[str]:
    """Number of evaluated conditions of a call, and their errors that TRY did not catch."""
    found: Counter[str] = Counter()
    states, texts = table(call[1]), [*conditions(call)]
    if not _fits(texts[0], states):
        return Counter({"refused": len(texts)})
    columns = frozenset(states.column_names)
    try:
        expression._evaluate([Condition(text, columns) for text in texts], states)
    except duckdb.Error:
        for text in texts:
            if not _fits(text, states):
                found["refused"] += 1
                continue
            found["conditions"] += 1
            try:
                expression._evaluate([Condition.parse(text)], states)
            except duckdb.Error as error:
                found[f"{type(error).__name__}: {str(error).splitlines()[0][:90]}"] += 1
    else:
        found["conditions"] = len(texts)
    found["rows"] = found["conditions"] * states.num_rows
    return found


def _fits(text: str, states: pa.Table) -> bool:
    """Return whether a spec may hold a condition."""
    try:
        expression.check([Condition.parse(text)], states.schema)
    except SpecError:
        return False
    return True


def _work(all_calls: list[Call], begin: int, out: int) -> None:
    with os.fdopen(out, "w") as told:
        for number in range(begin, len(all_calls)):
            told.write(f"{number}\t{json.dumps(outcomes(all_calls[number]))}\n")
            told.flush()


def search(all_calls: list[Call]) -> Iterator[tuple[Call, dict[str, int]]]:
    """Yield each call with its outcomes."""
    begin = 0
    while begin < len(all_calls):
        ours, theirs = os.pipe()
        child = os.fork()
        if not child:
            os.close(ours)
            _work(all_calls, begin, theirs)
            os._exit(0)
        os.close(theirs)
        waiting = b""
        with os.fdopen(ours, "rb", buffering=0) as told:
            while select.select([told], [], [], PATIENCE)[0] and (part := told.read(1 << 16)):
                *lines, waiting = (waiting + part).split(b"\n")
                for line in lines:
                    number, _, found = line.decode().partition("\t")
                    begin = int(number) + 1
                    yield all_calls[begin - 1], json.loads(found)
        os.kill(child, signal.SIGKILL)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        if begin < len(all_calls):
            yield (
                all_calls[begin],
                {"took too long" if status == -signal.SIGKILL else f"ended the process: {status}": 1},
            )
            begin += 1


def main() -> int:
    every, total = [*calls()], Counter[str]()
    for done, (call, found) in enumerate(search(every), start=1):
        counted = {name: count for name, count in found.items() if name in ("conditions", "rows", "refused")}
        total.update({**counted, "calls": "conditions" in found})
        for name, count in found.items():
            if name not in counted:
                total["with errors"] += 1
                print(f"{call[0]} of {', '.join(call[1])}: {count} conditions: {name}", flush=True)
        if done % 1000 == 0:
            print(f"{done} of {len(every)}: {dict(total)}", file=sys.stderr, flush=True)
    print(dict(total))
    return int(total["with errors"] > 0)


if __name__ == "__main__":
    sys.exit(main())
