"""Conditions of `where`: SQL on one state, evaluated by DuckDB on columns.

DuckDB parses the text, and its tree is checked against a list of allowed expressions. Anything that reads more than
the columns of one row (files, other tables, settings, the clock, random numbers, aggregates) is not on the list. An
error while a row is evaluated, such as a cast of a text that is not a number, makes the condition false for that row.
"""

import difflib
import json
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

from transforms.aggregation.expression_errors import not_evaluated, not_parsed, quoted
from transforms.aggregation.expression_rules import columns_read
from transforms.common.errors import InputError, SpecError

_SETTINGS = (
    "SET threads = 1",
    "SET TimeZone = 'UTC'",
    # Shared subexpressions would be computed outside of TRY, and their errors end the query.
    "SET disabled_optimizers = 'common_subexpressions,in_clause,expression_rewriter'",
    "SET autoinstall_known_extensions = false",
    "SET autoload_known_extensions = false",
    "SET python_enable_replacements = false",
    "SET enable_external_access = false",
    "SET lock_configuration = true",
)
MOST_UNCAUGHT = 100
"""Most rows of a batch with errors that TRY does not catch: each costs about 36 queries."""

_LEAD = "SELECT (("  # two brackets: a text that closes one of them is still inside the other
_LOCAL = threading.local()


@dataclass(frozen=True, slots=True)
class Condition:
    """Checked condition; only `parse` makes one.

    Attributes:
        text: The condition as in the spec.
        columns: Names of the columns that it reads, as written.

    >>> sorted(Condition.parse("ward = 'a' AND x > 2").columns)
    ['ward', 'x']
    """

    text: str
    columns: frozenset[str] = field(compare=False)

    @classmethod
    def parse(cls, text: str) -> "Condition":
        """Parse and check a condition.

        Raises:
            SpecError: The text does not parse, or contains an expression that is not allowed.
        """
        if not text.strip():
            raise SpecError("where: the condition is empty; leave `where` out to take all states")
        try:
            return cls(text, columns_read(_tree(text), text))
        except RecursionError:
            raise SpecError(f"where: {text[:40]!r}... is nested too deeply; write it flatter") from None


def evaluate(conditions: Sequence[Condition], table: pa.Table) -> list[np.ndarray]:
    """Return for each condition which rows satisfy it, bool [rows of the table]; null is false.

    Raises:
        InputError: There is not enough memory, or too many rows have errors that TRY does not catch.
    """
    read = sorted(frozenset[str]().union(*(condition.columns for condition in conditions)))
    # A condition without columns still needs the number of rows.
    states = table.select(read or table.column_names[:1])
    try:
        return _evaluate(conditions, states)
    except duckdb.OutOfMemoryException as error:
        raise _not_evaluated(error) from None
    except duckdb.Error:
        return [_by_halves(condition, states) for condition in conditions]


def _evaluate(conditions: Sequence[Condition], states: pa.Table) -> list[np.ndarray]:
    answers = ", ".join(f"coalesce(TRY(({condition.text}\n)), false)" for condition in conditions)
    return [column.to_numpy() for column in _query(f"SELECT {answers} FROM states", states).columns]


def _by_halves(condition: Condition, states: pa.Table) -> np.ndarray:
    """Evaluate one condition as `_evaluate` does, but false for each row with an error that TRY does not catch."""
    satisfied = np.zeros(states.num_rows, dtype=bool)
    waiting, failed = [(0, states.num_rows)], 0
    while waiting:
        begin, end = waiting.pop()
        try:
            (satisfied[begin:end],) = _evaluate([condition], states.slice(begin, end - begin))
        except duckdb.Error as error:
            failed += end - begin == 1
            if failed > MOST_UNCAUGHT or isinstance(error, duckdb.OutOfMemoryException):
                raise _not_evaluated(error) from None
            if end - begin > 1:
                middle = (begin + end) // 2
                waiting += [(begin, middle), (middle, end)]
    return satisfied


def _not_evaluated(error: Exception) -> InputError:
    """Return the error without the engine's message, which can quote a value."""
    return InputError(f"`where` could not be evaluated on a batch ({type(error).__name__}); make it simpler")


def parsed(condition: Condition) -> Any:
    """Return DuckDB's tree of a condition."""
    return _tree(condition.text)[0]["node"]["select_list"][0]


def constant(node: Any) -> pa.Scalar:
    """Return the value of a part of a condition's tree that reads no column.

    Raises:
        SpecError: It has no value, for example a text that is not a time.
    """
    statements = _tree("1")
    statements[0]["node"]["select_list"] = [node]
    document = json.dumps({"error": False, "statements": statements})
    try:
        rows = _connection().execute("SELECT json_deserialize_sql(?)", [document]).fetchall()
        return _connection().sql(rows[0][0]).to_arrow_table().column(0)[0]
    except duckdb.Error as error:
        raise SpecError(f"where: a constant is invalid: {not_evaluated(error)}") from None


def check(conditions: Sequence[Condition], schema: pa.Schema) -> None:
    """Check each condition against the types of the columns.

    Raises:
        SpecError: A column is missing, types do not fit, or a result is not true or false.
    """
    for condition in conditions:
        for column in sorted(condition.columns):
            _check_column(column, schema, condition)
        # One row of nulls suffices to convert constants: `time > 'noon'` fails here.
        states = pa.table({name: pa.nulls(1, kind) for name, kind in zip(schema.names, schema.types, strict=True)})
        states = states.select(sorted(condition.columns)) if condition.columns else pa.table({"row": [0]})
        try:
            kind = _query(f"SELECT ({condition.text}\n) FROM states", states).schema.types[0]
            for text in _PLAIN:
                _query(f"SELECT TRY(({condition.text}\n)) FROM states", _plain_row(states.schema, text))
        except duckdb.Error as error:
            raise SpecError(f"where: {quoted(condition.text)} cannot be evaluated: {not_evaluated(error)}") from None
        if kind != pa.bool_():
            raise SpecError(f"where: {quoted(condition.text)} is not true or false; compare it with something")


_PLAIN = ("1", "2000-01-01", "12:00:00")
"""Texts that a condition may cast to a number, a date or a time."""


def _plain_row(schema: pa.Schema, text: str) -> pa.Table:
    """Return one row without nulls: an error in it that TRY does not catch is an error of the condition.

    Args:
        schema: Schema of the columns.
        text: Value of each column of text.
    """
    kinds = ((field.type.value_type if pa.types.is_dictionary(field.type) else field.type) for field in schema)
    values = [pa.array([text] if pa.types.is_string(kind) else [1], None).cast(kind) for kind in kinds]
    return pa.table(values, names=schema.names)


def _check_column(column: str, schema: pa.Schema, condition: Condition) -> None:
    if column not in schema.names:
        near = difflib.get_close_matches(column, schema.names, 1)
        hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(map(repr, sorted(schema.names)))};"
        raise SpecError(
            f"where: {quoted(condition.text)} reads column {column!r}, which states do not have; {hint} if it is a "
            f"text, put it in single quotes: '{column}'"
        )
    # DuckDB does not distinguish `A` from `a`.
    for other in condition.columns:
        if other != column and other.lower() == column.lower():
            raise SpecError(f"where: columns {column!r} and {other!r} differ by case only; rename one in the files")


def _query(sql: str, states: pa.Table) -> pa.Table:
    connection = _connection()
    connection.register("states", states)
    try:
        return connection.sql(sql).to_arrow_table()
    except (duckdb.FatalException, duckdb.InternalException):
        del _LOCAL.connection  # after such an error it accepts no other query
        raise
    finally:
        connection.unregister("states")


def _connection() -> "duckdb.DuckDBPyConnection":
    """Return the thread's connection, closed to files, network and settings.

    The class is named in quotes: if other compiled code keeps a reference to this module when the interpreter ends, the
    class would stay alive, and DuckDB would print a list of leaked objects.
    """
    if not hasattr(_LOCAL, "connection"):
        connection = duckdb.connect(":memory:")
        for setting in _SETTINGS:
            connection.execute(setting).fetchall()
        _LOCAL.connection = connection
    return _LOCAL.connection


def _tree(text: str) -> Any:
    """Return DuckDB's tree of the one expression in `text`."""
    rows = _connection().execute("SELECT json_serialize_sql(?)", [f"{_LEAD}{text}\n))"]).fetchall()
    answer = json.loads(rows[0][0])
    if answer["error"]:
        at = int(answer.get("position", len(_LEAD))) - len(_LEAD)
        raise SpecError(f"where: {quoted(text)} {not_parsed(text, at, str(answer['error_message']))}")
    return answer["statements"]
