import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from transforms.aggregation.expression import Condition, check, evaluate
from transforms.common.errors import InputError, SpecError

ROOT = Path(__file__).resolve().parents[3]
TABLE = pa.table(
    {
        "ward": pa.array(["1", "abc", None, "5"]).dictionary_encode(),
        "x": [1.5, 2.0, None, -3.0],
        "seen": pa.array([0, 10**15, None, -1], pa.timestamp("us", "UTC")),
        "open": [True, False, None, True],
        "n": [2**63 - 1, 0, 1, 2],
    }
)


def satisfied(text: str, table: pa.Table = TABLE) -> list[bool]:
    condition = Condition.parse(text)
    check([condition], table.schema)
    return evaluate([condition], table)[0].tolist()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ward = 'abc'", [False, True, False, False]),
        ("ward IN ('1', '5') AND open", [True, False, False, True]),
        ("ward NOT IN ('1')", [False, True, False, True]),
        ("x BETWEEN 1 AND 2", [True, True, False, False]),
        ("x IS NULL OR x < 0", [False, False, True, True]),
        ("ward LIKE 'a%'", [False, True, False, False]),
        ("upper(ward) = 'ABC' -- a comment", [False, True, False, False]),
        ("CASE WHEN open THEN x > 0 ELSE x > 1 END", [True, True, False, False]),
        ("extract(year FROM seen) = 1970", [True, False, False, False]),
        ("seen - INTERVAL 1 DAY > TIMESTAMP '2001-01-01'", [False, True, False, False]),
        ("date_trunc('day', seen) = DATE '1970-01-01'", [True, False, False, False]),
        ("coalesce(x, 0) = 0", [False, False, True, False]),
        ("open IS NOT TRUE", [False, True, True, False]),
        ("\"ward\" || '!' = '5!'", [False, False, False, True]),
        ("-x + 1 > abs(x) % 2", [False, False, False, True]),
        ("true", [True, True, True, True]),
    ],
)
def test_a_condition_is_evaluated_for_each_row_and_null_is_false(text, expected):
    assert satisfied(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("CAST(ward AS INTEGER) > 3", [False, False, False, True]),
        ("ward IN (1, 2)", [True, False, False, False]),
        ("ward::INT + 1 > 1 OR ward::INT + 1 < 0", [True, False, False, True]),
        ("TRY_CAST(ward AS INTEGER) IS NULL", [False, True, True, False]),
        ("n * n >= 0", [False, True, True, True]),
        ("CASE WHEN ward::INT > 1 THEN true ELSE ward::INT = 1 END", [True, False, False, True]),
    ],
)
def test_a_row_on_which_a_condition_fails_does_not_satisfy_it(text, expected):
    assert satisfied(text) == expected


def broken(*texts: bytes) -> pa.Array:
    """Return an array that Arrow accepts as texts, although the bytes are not UTF-8."""
    return pa.array(texts, pa.binary()).view(pa.string())


@pytest.mark.slow
def test_an_error_that_ends_the_query_is_false_for_its_row_only():
    table = pa.table({"w": ["12:00", None, None, "13:00", "y"] * 9, "n": [0, 1, 2, 1, 0] * 9})

    (found,) = evaluate([Condition.parse("date_diff('day', w::TIME, w::TIME) = 0 OR n = 1")], table)

    assert found.tolist() == [False, True, False, False, False] * 9
    assert satisfied("n = 1", table) == [False, True, False, True, False] * 9


@pytest.mark.slow
def test_an_error_that_breaks_the_engine_is_false_for_its_row_only():
    found = evaluate(
        [Condition.parse("lower(w) = 'a'"), Condition.parse("n = 1")],
        pa.table({"w": broken(b"A", b"\xff"), "n": [0, 1]}),
    )

    assert [one.tolist() for one in found] == [[True, False], [False, True]]
    assert satisfied("ward = 'abc'") == [False, True, False, False]


@pytest.mark.slow
def test_errors_that_end_the_query_in_too_many_rows_end_the_run():
    table = pa.table({"w": ["12:00"] * 300})

    with pytest.raises(InputError, match="NotImplementedException"):
        evaluate([Condition.parse("date_diff('day', w::TIME, w::TIME) = 0")], table)


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("ward LIKE ward ESCAPE '!'", "a pattern with ESCAPE that is not a constant"),
        ("ward NOT ILIKE 'a%' ESCAPE ward", "a pattern with ESCAPE that is not a constant"),
        ("date_trunc(ward, seen) = seen", "a part of a date that is not a constant"),
        ("date_part(ward, seen) = 1", "a part of a date that is not a constant"),
        ("datediff(lower('DAY'), seen, seen) = 1", "a part of a date that is not a constant"),
        ("ward LIKE 'a!' ESCAPE '!'", "pattern that ends with its ESCAPE; write it twice"),
        ("ward LIKE 'a!b' ESCAPE '!!'", "a constant in it is invalid"),
        ("date_diff('day', ward::TIME, ward::TIME) = 0", "cannot be evaluated"),
        ("date_part('timezone', ward::DATE) = 0", "cannot be evaluated"),
    ],
)
def test_arguments_that_can_end_the_query_must_be_constants(text, named):
    with pytest.raises(SpecError, match=named):
        satisfied(text)


def test_several_conditions_are_answered_in_their_order():
    conditions = [Condition.parse(text) for text in ("x > 0", "open", "x > 0 AND NOT open")]

    answers = evaluate(conditions, TABLE)

    assert [answer.tolist() for answer in answers] == [
        [True, True, False, False],
        [True, False, False, True],
        [False, True, False, False],
    ]
    assert all(answer.dtype == np.bool_ for answer in answers)


def test_an_empty_table_has_no_answers():
    assert satisfied("x > 0", TABLE.slice(0, 0)) == []


def test_columns_are_those_that_the_text_names():
    assert Condition.parse("a = 1 AND (\"b c\" > 2 OR lower(a) = 'd')").columns == {"a", "b c"}


def test_a_condition_survives_pickling():
    condition = Condition.parse("x > 1")

    assert pickle.loads(pickle.dumps(condition)) == condition  # noqa: S301


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("x IN (SELECT 1)", "a subquery"),
        ("EXISTS (SELECT 1)", "a subquery"),
        ("x IN (FROM read_csv('/etc/passwd'))", "a subquery"),
        ("read_text('/etc/passwd') IS NULL", "read_text"),
        ("getenv('HOME') = 'x'", "getenv"),
        ("current_setting('threads') = '1'", "current_setting"),
        ("sum(x) > 1", "sum"),
        ("count(*) > 1", "count"),
        ("sum(x) OVER () > 1", "a window function"),
        ("x = random()", "random"),
        ("now() > seen", "now"),
        ("x = $1", "a parameter"),
        ("x = ?", "a parameter"),
        ("x -> x > 1", "a lambda"),
        ("*", r"\*"),
        ("COLUMNS(*)", r"\*"),
        ("#1 = 2", "a positional reference"),
        ("t.x = 1", "a name with a dot"),
        ("main.lower(ward) = 'x'", "lower"),
        ("lower(ward) FILTER (WHERE open)", "lower"),
        ("x::INTEGER[] IS NULL", "the type list"),
        ("ward COLLATE nocase = 'x'", "COLLATE"),
        ("nextval('s') = 1", "nextval"),
        ("seen AT TIME ZONE ward IS NULL", "a time zone that is not a constant"),
        ("timezone(upper('utc'), seen) IS NULL", "a time zone that is not a constant"),
        ("x = 1, open", "several expressions"),
    ],
)
def test_an_expression_beyond_one_row_is_refused_by_name(text, named):
    with pytest.raises(SpecError, match=f"holds .*{named}.*one row's columns only"):
        Condition.parse(text)


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        "",
        "  ",
        "x =",
        "x = 'a",
        "x = 1 /*",
        "x AS y",
        "x = 1 LIMIT 5",
        "1=1) FROM t WHERE (2=2",
        "1=1); SELECT (2",
        "1=1), (2=2",
        "1=1) AS a, (2=2",
        "1=1)) UNION SELECT ((2=2",
        "1=1)) FROM t WHERE ((2=2",
        "1=1)), ((2=2",
        "1=1)); SELECT ((2",
        "1=1)) ORDER BY ((1",
        "1=1) WINDOW w AS (",
        "1=1)) USING SAMPLE ((1",
        "NOT " * 5000 + "open",
        "(" * 5000 + "x" + ")" * 5000,
        " + ".join(["x"] * 5000) + " > 1",
    ],
)
def test_a_text_that_is_not_one_expression_is_refused(text):
    with pytest.raises(SpecError, match=r"^where: "):
        Condition.parse(text)


def test_a_syntax_error_names_its_place():
    with pytest.raises(SpecError, match=r"does not parse at character 7; expected SQL$"):
        Condition.parse("x = 1 LIMIT 5")
    with pytest.raises(SpecError, match="does not parse at character 12"):  # and byte 13
        Condition.parse("ward = 'ä' AN age > 2")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("x >=", "does not parse: it ends where a value, a column or a bracket is missing$"),
        ("(x > 1))", "does not parse: a bracket is closed that was not opened$"),
        ("ward = 'a", "does not parse: the quotation mark at character 8 is not closed$"),
        ("at > 'noon'", 'if at is a column, write it in double quotes: "at"$'),
        ("lenght(ward) > 2", r"the function lenght \(did you mean length\?\), which is not allowed"),
        ("ward > 3", "cannot be evaluated: it compares text with a whole number; text, dates and times are in single"),
        ("n LIKE 'a%'", r"cannot be evaluated: LIKE does not take \(a whole number, text\)"),
        ("n > 'many'", "cannot be evaluated: 'many' is not a whole number; if the column was read as"),
        ("ward ~ '('", "cannot be evaluated: a constant in it is invalid"),
    ],
)
def test_errors_are_described_in_the_words_of_a_spec(text, told):
    with pytest.raises(SpecError, match=told):
        satisfied(text)


def test_a_missing_column_is_named_with_the_most_similar_one():
    with pytest.raises(SpecError, match=r"'wrad'.*did you mean 'ward'"):
        satisfied("wrad = 'a'")


def test_a_text_without_quotes_gets_a_hint():
    for text in ("ward = abc", 'ward = "abc"', "ward IN (abc, '5')"):
        with pytest.raises(SpecError, match=r"column 'abc'.* if it is a text, put it in single quotes: 'abc'$"):
            satisfied(text)


@pytest.mark.parametrize("text", ["current_date > seen", "current_user = ward", "rowid = 1", "states IS NULL"])
def test_keywords_of_the_engine_are_columns_or_refused(text):
    with pytest.raises(SpecError, match="which states do not have"):
        satisfied(text)


@pytest.mark.parametrize("text", ["x", "ward", "NULL", "x + 1"])
def test_a_condition_must_be_true_or_false(text):
    with pytest.raises(SpecError, match="not true or false"):
        satisfied(text)


@pytest.mark.parametrize("text", ["ward > 3", "seen > 'noon'", "seen > 5", "ward ~ '('", "n = 'x'"])
def test_types_and_constants_that_do_not_fit_fail_before_any_row(text):
    with pytest.raises(SpecError, match="cannot be evaluated"):
        satisfied(text)


def test_columns_that_differ_by_case_only_are_refused():
    with pytest.raises(SpecError, match="differ by case only"):
        satisfied("a = 1 AND A = 2", pa.table({"a": [1], "A": [2]}))


@given(st.lists(st.one_of(st.none(), st.integers(-5, 5)), max_size=50), st.integers(-5, 5))
def test_a_comparison_agrees_with_python(values, bound):
    table = pa.table({"x": pa.array(values, pa.int64())})

    assert satisfied(f"x >= {bound}", table) == [value is not None and value >= bound for value in values]


KEPT_FOR_EVER = """
import ctypes, importlib, pathlib
for folder in ("transforms", "pipelines"):
    for path in pathlib.Path(folder).rglob("[a-z]*.py"):
        module = importlib.import_module(".".join(path.with_suffix("").parts))
        for kept in list(vars(module).values()):
            if getattr(kept, "__module__", None) == module.__name__:
                ctypes.pythonapi.Py_IncRef(ctypes.py_object(kept))
from transforms.aggregation.expression import Condition
Condition.parse("a = 1")
"""


@pytest.mark.slow
def test_a_leaked_module_keeps_no_object_of_duckdb() -> None:
    """Else DuckDB prints a list of leaks when a program ends, as after tests in several processes."""
    done = subprocess.run([sys.executable, "-c", KEPT_FOR_EVER], cwd=ROOT, capture_output=True, text=True, check=True)

    assert "leaked" not in done.stderr
