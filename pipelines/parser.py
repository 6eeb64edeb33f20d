"""A parser of arguments whose errors are one line, in the form of all other errors."""

import argparse
import re
import sys
from typing import NoReturn

from pipelines.spec.words import not_one_of


class Parser(argparse.ArgumentParser):
    """Also the class of the parsers that are added to it for commands."""

    def error(self, message: str) -> NoReturn:
        """Print one line without the usage block, and exit with code 2."""
        print(f"slackwater: {_reworded(message, self.prog)}", file=sys.stderr)
        self.exit(2)


def _reworded(message: str, program: str) -> str:
    """A message of argparse in the form of other errors.

    >>> _reworded("the following arguments are required: SPEC, -o", "slackwater smooth")
    'SPEC, -o: missing; see `slackwater smooth --help`'
    >>> _reworded("argument --seed: expected one argument", "slackwater simulate")
    '--seed: expected one argument; see `slackwater simulate --help`'
    """
    message, see = message.removeprefix("argument "), f"; see `{program} --help`"
    if missing := re.fullmatch("the following arguments are required: (.*)", message):
        return f"{missing[1]}: missing{see}"
    if choice := re.fullmatch(r"(.*?): invalid choice: '(.*)' \(choose from (.*)\)", message, re.DOTALL):
        return f"{choice[1]}: {not_one_of(choice[2], choice[3].replace(chr(39), '').split(', '))}"
    return message + (see if message.endswith("argument") else "")
