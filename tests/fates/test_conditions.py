"""The result of a condition for a row is the same alone and with other rows: errors and overflow stay in their row."""

from random import Random

import numpy as np
import pyarrow as pa

from transforms.aggregation.expression import Condition, check, evaluate
from transforms.common.kinds import ARROW

KINDS = {"n": "int64", "ok": "bool", "seen": "timestamp", "w": "string", "x": "float64"}
VALUES: dict[str, list[object]] = {
    "n": [None, 0, 1, -1, 2, 7, 1000, 2**31, 2**62, 2**63 - 1, -(2**63), -(2**63) + 1],
    "ok": [None, True, False],
    "seen": [None, 0, 1, -1, 10**15, -(10**15), 253402300799 * 10**6, -62135596800 * 10**6, 2**63 - 1, -(2**63) + 2],
    "w": [
        *(None, "", "a", "A", "1", "-1", "1.5", "abc", " 5 ", "1e400", "nan", "inf", "\u0130", "\0", "a\0b", "x" * 300),
        *(
            "9" * 40,
            "2013-02-08",
            "2013-02-30",
            "true",
            "%",
            "a_b",
            "(",
            "\\",
            "\n",
            "😀",
            "0x1F",
            "12:00",
            "day",
            "%Y",
        ),
    ],
    "x": [None, 0.0, -0.0, 1.0, 1.5, -3.0, 1e300, float("inf"), float("-inf"), float("nan"), 5e-324, 1e18, 1e19],
}
CONDITIONS = """
w = 'a' | w IN ('a', '1', '') | w NOT IN ('a', 'b') | w LIKE 'a%' | w ILIKE '%A%' | w LIKE w | w ~ '.*a.*' | w ~ w
w::INT > 0 | w::BIGINT > 0 | w::DOUBLE > 1 | w::DECIMAL(9,2) > 1 | w::DATE > DATE '2000-01-01'
w::TIME > TIME '01:00' | w::TIMESTAMP > TIMESTAMP '2000-01-01' | w::BOOLEAN | w::INTERVAL > INTERVAL 1 DAY
w::UTINYINT < 9 | w IN (1, 2) | TRY_CAST(w AS INT) IS NULL | coalesce(TRY_CAST(w AS INT), n) > 0 | length(w) > 2
upper(w) = 'A' | trim(w) = '5' | substr(w, n::INT, 2) = 'a' | left(w, n) = 'a' | right(w, n) = 'c'
w || n::VARCHAR = 'a1' | contains(w, 'b') | w = n | n + 1 > 0 | n * n > 0 | -n > 0 | abs(n) > 1 | n % 2 = 1
n // 0 IS NULL | 10 // n > 1 | n % n = 0 | n ** 3 > 1 | n::INT = n | n::TINYINT > 0 | (n + 1)::INT IN (1, 2)
n = 1 OR n * n > 5 | n > 0 AND 10 // n > 1 | n::DECIMAL(18,0) * 10 > 1
CASE WHEN n = 0 THEN false ELSE 10 % n > 0 END | CASE n WHEN 1 THEN w::INT > 0 WHEN 0 THEN false ELSE n * n > 0 END
x > 1 | x = x | isnan(x) | sqrt(x) > 1 | ln(x) > 0 | exp(x) > 1 | pow(x, 2) > 1 | x::INT > 0 | round(x, n::INT) > 1
x = n | x / 0 > 1 | x % 2 = 1 | greatest(x, n) > 1 | x::DECIMAL(5,2) > 0 | x::FLOAT > 1 | x::VARCHAR = '1.0'
nullif(x, 0) IS NULL | ok | NOT ok | ok IS NOT TRUE | ok AND w::INT > 0 | ok OR w::INT > 0 | ok = (n > 0)
false AND w::INT > 0 | true OR w::INT > 0 | extract(year FROM seen) = 1970
seen - INTERVAL 1 DAY > TIMESTAMP '2001-01-01' | seen + INTERVAL 400 YEAR > seen
date_trunc('year', seen) IS NOT NULL
strftime(seen, w) = '1970' | epoch_us(seen) = 1 | seen::DATE = DATE '1970-01-01' | seen::VARCHAR > '2'
seen + to_days(n::INT) > seen | date_diff('day', seen, TIMESTAMPTZ '2001-01-01') > 0
timezone('Europe/Paris', seen) > TIMESTAMP '2001-01-01' | seen + to_hours(n) > seen | to_seconds(x) > INTERVAL 1 DAY
hour(seen) = 1 | seen::TIME > TIME '01:00' | week(seen) = 1 | TRY(w::INT) IS NULL OR TRY(n * n) > 5
coalesce(w::INT, 5) > 0 | (w::INT > 0) IS NULL | if(ok, w::INT > 0, n > 0)
"""


def _table(rows: list[dict[str, object]]) -> pa.Table:
    columns = {}
    for name, kind in KINDS.items():
        values = [row[name] for row in rows]
        plain = {"string": pa.string(), "timestamp": pa.int64()}.get(kind, ARROW[kind])
        columns[name] = pa.array(values, plain)
    columns["seen"] = columns["seen"].cast(ARROW["timestamp"])
    return pa.table(columns | {"w": columns["w"].dictionary_encode()})


def test_a_condition_on_a_row_depends_on_no_other_row():
    choose = Random(5)
    rows = [{name: choose.choice(values) for name, values in VALUES.items()} for _ in range(10)]
    table = _table(rows)
    conditions = [Condition.parse(text) for line in CONDITIONS.strip().splitlines() for text in line.split(" | ")]
    check(conditions, table.schema)
    told = 0
    for first in range(0, len(conditions), 16):
        group = conditions[first : first + 16]
        alone = np.array([np.array(evaluate(group, table.slice(row, 1)))[:, 0] for row in range(len(rows))]).T
        many = [choose.randrange(len(rows)) for _ in range(2100)]  # longer than one vector of the engine
        companies = [many, [many[0]] * 2050 + [many[1]], choose.sample(range(len(rows)), 3)]
        for company in companies:
            found = np.array(evaluate(group, table.take(pa.array(company))))
            different = found != alone[:, company]
            assert not different.any(), [
                (group[at].text, rows[company[row]]) for at, row in zip(*np.nonzero(different), strict=True)
            ][:3]
        told += int(alone.sum())

    assert len(rows) * len(conditions) * 0.05 < told < len(rows) * len(conditions) * 0.8
