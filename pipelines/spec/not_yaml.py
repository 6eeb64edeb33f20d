"""Messages about a file that is not YAML, in one line: file, line, key and what to do."""

import re

from ruamel.yaml.composer import MaxDepthExceededError
from ruamel.yaml.error import MarkedYAMLError

TOO_DEEP = "nested too deeply; a spec needs a few levels only"

_BRACKET = "the bracket that opens here is not closed, or a comma is missing after an item"
_QUOTES = "put the text in single quotes"
_REWORDED = (
    # pattern in the parser's message; whether to report the line where the faulty construct begins; our message
    ("'\\\\t'", False, "a tab where YAML expects spaces; indent with spaces"),
    ("another document", False, "a second document begins here; a spec is one document, remove `---`"),
    (
        "mapping values are not allowed",
        False,
        "no key can begin here; write a space after each colon, indent keys alike, and quote text that holds ': '",
    ),
    (r"while parsing a flow .*(expected ',' or|expected the node content|<stream end>)", True, _BRACKET),
    (r"unexpected (end of stream|document separator)", True, "the quotation mark that opens here is not closed"),
    ("found '<scalar>'", False, "text follows a closing quotation mark; remove it, or write '' for each quote within"),
    ("found '<block (mapping|sequence) start>'", False, "indented unlike the lines before it; indent them alike"),
    ("find expected ':'", True, "a key without a colon, or text that is not indented; write `key: value`"),
    ("cannot start any token", False, f"an unquoted value cannot begin with @, ` or %; {_QUOTES}"),
    ("alias", False, f"an unquoted value that begins with * is an alias, and it has no anchor; {_QUOTES}"),
    ("anchor", False, f"an unquoted value that begins with & is an anchor; {_QUOTES}"),
    ("scanning a (tag|directive)|tag handle", False, f"an unquoted value that begins with ! is a tag; {_QUOTES}"),
    ("escape", False, f"a backslash in double quotes begins an escape; {_QUOTES}"),
    ("sequence entries", False, "the first `- ` of a list must be on the line after its key; break the line"),
    ("scanning a block scalar", False, f"an unquoted value that begins with | or > is a block of lines; {_QUOTES}"),
)


def reworded(error: MarkedYAMLError, text: str) -> str:
    """Return `LINE: KEY: MESSAGE`, in the terms of a spec instead of the parser's."""
    if isinstance(error, MaxDepthExceededError):
        found, begun = TOO_DEEP, False
    else:
        told = " ".join(f"{error.context} {error.problem}".split())
        known = ((message, begun) for pattern, begun, message in _REWORDED if re.search(pattern, told))
        found, begun = next(known, ("not YAML; check indentation, colons, quotes and brackets here", False))
    marks = [error.problem_mark, error.context_mark]
    mark = next(filter(None, reversed(marks) if begun else marks), None)
    return at_line(1 if mark is None else mark.line + 1, found, text)


def at_line(line: int, message: str, text: str) -> str:
    """Return a message with its line and the key at the beginning of the line, if there is one.

    Args:
        line: Number of the line, counted from 1.
        message: What is wrong and what to do.
        text: Text of the whole file.
    """
    key = re.match(r"[\s{-]*([A-Za-z_]\w{0,59})\s*:", "".join(text.splitlines(True)[line - 1 : line]))
    return f"{line}: {key[1]}: {message}" if key else f"{line}: {message}"
