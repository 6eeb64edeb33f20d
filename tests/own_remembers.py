"""What hundreds of tests have made again, made once: the parser of the command line, and what the text of a spec says.

Both are only read afterwards. It holds in a process once this is imported.
"""

from functools import cache, lru_cache
from typing import Any

from pipelines import cli
from pipelines.spec import document
from transforms.common.errors import SpecError

_parse_anew = document._parse


@lru_cache(maxsize=64)
def _parsed(text: str) -> Any:
    return _parse_anew("", text)


def _parse(name: str, text: str) -> Any:
    try:
        return _parsed(text)
    except SpecError:
        return _parse_anew(name, text)  # says the name


cli._parser = cache(cli._parser)
document._parse = _parse
