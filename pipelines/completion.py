"""`slackwater completion`: what a shell needs to complete commands, flags and files, as a script.

The script is made once and starts no Python: to complete a word takes no longer than in any other program.
"""

import argparse
from collections.abc import Iterator

import shtab

from pipelines.epochs.flags import refuse_any
from pipelines.epochs.results import Result

_FILES = ("SPEC", "SRC", "FILE", "FILES", "PUBLIC", "DST", "DESIGN", "REPORTS")
"""What stands for a path in the help of an argument."""


def completion(arguments: argparse.Namespace, flags: list[str]) -> Result:
    refuse_any(flags, "completion")
    for action in _actions(arguments.parser):
        if action.metavar in _FILES:
            action.complete = shtab.FILE  # type: ignore[attr-defined]  # where shtab looks for it
    return {}, shtab.complete(arguments.parser, arguments.shell)


def _actions(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    """Of all commands."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for inner in action.choices.values():
                yield from _actions(inner)
        else:
            yield action
