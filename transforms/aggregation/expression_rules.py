"""Expressions that a `where` condition may contain: a list for DuckDB's tree of the parsed text.

Everything else is refused, including what later versions of DuckDB may add. Listed expressions depend on the columns of
one row only.
"""

from collections.abc import Iterator
from difflib import get_close_matches
from typing import Any

from transforms.aggregation.expression_errors import MOST_QUOTED, quoted
from transforms.common.errors import SpecError

SqlNode = dict[str, Any]

_OPERATORS_ALLOWED = """
    OPERATOR_NOT OPERATOR_IS_NULL OPERATOR_IS_NOT_NULL OPERATOR_COALESCE OPERATOR_TRY OPERATOR_NULLIF
    COMPARE_IN COMPARE_NOT_IN
"""

_FUNCTIONS_ALLOWED = """
    + - * / // % ** ^ || ~~ !~~ ~~* !~~* ~~~ like_escape not_like_escape ilike_escape not_ilike_escape
    regexp_matches regexp_full_match lower upper trim ltrim rtrim length strlen substring substr left right
    starts_with prefix ends_with suffix contains position strpos instr replace reverse concat
    abs sign round floor ceil ceiling trunc sqrt ln log log10 log2 exp pow power mod greatest least
    isnan isinf isfinite if ifnull nullif
    date_part date_trunc date_diff datediff year quarter month week weekday day dayofweek isodow dayofyear hour minute
    second epoch epoch_ms epoch_us timezone strftime
    to_years to_months to_weeks to_days to_hours to_minutes to_seconds
"""

_TYPES_ALLOWED = """
    BOOLEAN TINYINT SMALLINT INTEGER BIGINT HUGEINT UTINYINT USMALLINT UINTEGER UBIGINT FLOAT DOUBLE DECIMAL NUMERIC
    VARCHAR TEXT STRING DATE TIME TIMESTAMP TIMESTAMPTZ INTERVAL BOOL INT REAL
    INT1 INT2 INT4 INT8 INT64 INT32 INT16 FLOAT4 FLOAT8
"""

_OPERATORS = frozenset(_OPERATORS_ALLOWED.split())
_FUNCTIONS = frozenset(_FUNCTIONS_ALLOWED.split())
_TYPES = frozenset(_TYPES_ALLOWED.split()) | {"TIMESTAMP WITH TIME ZONE"}

_CHILDREN: dict[str, tuple[str, ...]] = {
    "COLUMN_REF": (),
    "CONSTANT": (),
    "COMPARISON": ("left", "right"),
    "CONJUNCTION": ("children",),
    "OPERATOR": ("children",),
    "BETWEEN": ("input", "lower", "upper"),
    "CASE": ("case_checks", "else_expr"),
    "CAST": ("child",),
    "FUNCTION": ("arguments",),
}
"""Class of a node to its members that hold expressions."""

_CALLED = {
    "STAR": "*",
    "SUBQUERY": "a subquery",
    "WINDOW": "a window function",
    "PARAMETER": "a parameter",
    "LAMBDA": "a lambda",
    "COLLATE": "COLLATE",
    "POSITIONAL_REFERENCE": "a positional reference",
    "DEFAULT": "DEFAULT",
}

_FIRST, _SECOND_AND_THIRD = slice(1), slice(1, 3)
_CONSTANT = {
    "timezone": (_FIRST, "a time zone"),
    **dict.fromkeys(("date_part", "date_trunc", "date_diff", "datediff"), (_FIRST, "a part of a date")),
    **dict.fromkeys(
        ("like_escape", "not_like_escape", "ilike_escape", "not_ilike_escape"),
        (_SECOND_AND_THIRD, "a pattern with ESCAPE"),
    ),
}
"""Arguments that must be constants: an unsuitable value is an error that TRY does not catch, and would end the run."""

_ROW_ONLY = "a condition may look at one row's columns only"


def columns_read(statements: list[SqlNode], text: str) -> frozenset[str]:
    """Check the statements of the parsed text `SELECT ((text))`, and return the columns that it reads.

    Raises:
        SpecError: There is more than one expression, or one that is not allowed.
    """
    if len(statements) != 1:
        raise _refusal(text, "several statements")
    node = statements[0]["node"]
    if statements[0].get("named_param_map"):
        raise _refusal(text, "a parameter")
    if node.get("type") != "SELECT_NODE" or len(node["select_list"]) != 1:
        raise _refusal(text, "more than one expression")
    ground: dict[str, Any] = {
        "select_list": None,
        "type": None,
        "cte_map": {"map": []},
        "aggregate_handling": "STANDARD_HANDLING",
    }
    for key, value in node.items():
        if key == "from_table":
            if value["type"] != "EMPTY" or value.get("sample"):
                raise _refusal(text, "FROM")
        elif key not in ground:
            if value:
                raise _refusal(text, key.replace("_", " "))
        elif ground[key] is not None and value != ground[key]:
            raise _refusal(text, key.replace("_", " "))
    return frozenset(_columns(node["select_list"][0], text))


def _columns(node: SqlNode, text: str) -> Iterator[str]:
    class_ = node["class"]
    if class_ not in _CHILDREN:
        raise _refusal(text, _CALLED.get(class_, class_.lower()))
    if node.get("alias"):
        raise _refusal(text, "an alias")
    if class_ == "COLUMN_REF":
        if len(node["column_names"]) != 1:
            raise _refusal(text, "a name with a dot")
        yield node["column_names"][0]
    elif class_ == "OPERATOR" and node["type"] not in _OPERATORS:
        raise _refusal(text, f"the operator {node['type'].lower()}")
    elif class_ == "CAST":
        _check_type(node["type_expr"], text)
    elif class_ == "FUNCTION":
        _check_function(node, text)
    for member in _CHILDREN[class_]:
        for child in _expressions(node[member]):
            yield from _columns(child, text)


def _expressions(member: Any) -> Iterator[SqlNode]:
    """Yield the expressions in one member: a node, a list of nodes, arguments or the branches of CASE."""
    for item in member if isinstance(member, list) else [member]:
        if "class" in item:
            yield item
        else:
            yield from (item[key] for key in ("expression", "when_expr", "then_expr") if key in item)


def _check_function(node: SqlNode, text: str) -> None:
    name = node["function_name"]
    plain = not (
        node["schema"]
        or node["catalog"]
        or node["filter"]
        or node["order_bys"]["orders"]
        or node["distinct"]
        or node["export_state"]
        or any(argument["name"] for argument in node["arguments"])
    )
    if name.lower() not in _FUNCTIONS or not plain:
        near = get_close_matches(name.lower(), _FUNCTIONS - {name.lower()}, 1)
        hint = f" (did you mean {near[0]}?)" if near else ""
        raise _refusal(text, "several expressions" if name == "row" else f"the function {name}{hint}")
    places, what = _CONSTANT.get(name.lower(), (slice(0), ""))
    constants = [*_expressions(node["arguments"])][places]
    if any(argument["class"] != "CONSTANT" for argument in constants):
        raise _refusal(text, f"{what} that is not a constant")
    if places == _SECOND_AND_THIRD:
        pattern, escape = (str(argument["literal"].get("text", "")) for argument in constants)
        if escape and (len(pattern) - len(pattern.rstrip(escape))) % 2:
            raise SpecError(f"where: {quoted(text)} has a pattern that ends with its ESCAPE; write it twice")


def _check_type(type_: SqlNode, text: str) -> None:
    name = type_["type_name"].upper()
    constants = all(child["class"] == "CONSTANT" for child in type_["children"])
    if type_["class"] != "TYPE" or name not in _TYPES or type_["schema"] or type_["catalog"] or not constants:
        raise _refusal(text, f"the type {type_['type_name']}")


def _refusal(text: str, what: str) -> SpecError:
    what = what if len(what) <= MOST_QUOTED else f"{what[:MOST_QUOTED]}..."
    return SpecError(f"where: {quoted(text)} holds {what}, which is not allowed; {_ROW_ONLY}")
