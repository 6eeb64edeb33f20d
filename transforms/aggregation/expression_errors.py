"""Errors in conditions, described in the words of a spec instead of the engine's."""

import re

_KINDS = (
    (r"VARCHAR|STRING_LITERAL|CHAR", "text"),
    (r"\w*INT\d*|INTEGER\w*|HUGEINT", "a whole number"),
    (r"DOUBLE|FLOAT|DECIMAL.*", "a number"),
    (r"BOOL(EAN)?", "true or false"),
    (r"DATE", "a date"),
    (r"TIME.*", "a time"),
)
_OPERATORS = {"~~": "LIKE", "!~~": "NOT LIKE", "~~*": "ILIKE", "!~~*": "NOT ILIKE"}
_JOINS = {"and", "or", "not", "is", "in", "like", "ilike", "between", "case", "when", "then", "else", "end", "null"}
"""Keywords that cannot be the column to quote if the next word is wrong."""

_NAME_TYPE = "; if the column was read as another type than you meant, name its type in changelog.types"


MOST_QUOTED = 300
"""Most characters of a condition in a message."""


def quoted(text: str) -> str:
    """Return a condition in quotation marks, cut if it is too long for a message.

    >>> quoted("age > 3"), len(quoted("a" * 10_000)) < 310, len(quoted("\\0" * 300)) < 310
    ("'age > 3'", True, True)
    """
    shown = repr(text)
    return shown if len(shown) <= MOST_QUOTED + 2 else f"{shown[: MOST_QUOTED + 1]}{shown[0]}..."


def not_parsed(text: str, at: int, message: str) -> str:
    """Return where and why a text is not one expression.

    Args:
        text: The condition.
        at: Bytes before the problem, as the engine counts them.
        message: The engine's message.

    >>> not_parsed("age >=", 6, 'syntax error at or near ")"')
    'does not parse: it ends where a value, a column or a bracket is missing'
    >>> not_parsed("at > 'noon'", 3, 'syntax error at or near ">"')
    'does not parse at character 4; if at is a column, write it in double quotes: "at"'
    """
    before = text.encode()[: max(at, 0)].decode(errors="ignore")
    if "unterminated" in message:
        return f"does not parse: the quotation mark at character {len(before) + 1} is not closed"
    if text.count(")") > text.count("("):
        return "does not parse: a bracket is closed that was not opened"
    if not text[len(before) :].strip():
        return "does not parse: it ends where a value, a column or a bracket is missing"
    word = re.search(r"(\w+)\s*$", before)
    named = word is not None and not word[1].isdecimal() and word[1].lower() not in _JOINS
    short = word is not None and len(word[1]) <= MOST_QUOTED
    hint = (
        f'if {word[1]} is a column, write it in double quotes: "{word[1]}"'
        if word and named and short
        else "expected SQL"
    )
    return f"does not parse at character {len(before) + 1}; {hint}"


def not_evaluated(error: Exception) -> str:
    """Return why the engine cannot evaluate an expression, and what to do.

    >>> not_evaluated(ValueError("... argument types '~~(BIGINT, STRING_LITERAL)'.")).partition(";")[0]
    'LIKE does not take (a whole number, text)'
    """
    told = str(error)
    if found := re.search(r"Cannot compare values of type (.*?) and type (.*?) - ", told):
        kinds = f"{_kind(found[1])} with {_kind(found[2])}"
        return f"it compares {kinds}; text, dates and times are in single quotes{_NAME_TYPE}"
    if found := re.search(r"Could not convert string '(.*?)' to (\w+)", told):
        return f"{found[1]!r} is not {_kind(found[2])}{_NAME_TYPE}"
    if found := re.search(r"argument types '(.+?)\((.*)\)'", told):
        kinds = ", ".join(map(_kind, found[2].split(", ")))
        return f"{_OPERATORS.get(found[1], found[1])} does not take ({kinds}){_NAME_TYPE}"
    if type(error).__name__ in ("InvalidInputException", "SyntaxException"):
        return "a constant in it is invalid, such as a pattern with an open bracket"
    return f"its types do not fit{_NAME_TYPE}"


def _kind(name: str) -> str:
    return next((said for pattern, said in _KINDS if re.fullmatch(pattern, name)), name.lower())
