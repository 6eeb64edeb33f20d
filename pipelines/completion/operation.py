"""`slackwater completion`: a script with which a shell completes commands, flags and files.

The script is generated once and starts no Python, so completion is as fast as for other programs.
"""

import argparse
from dataclasses import dataclass, field

import shtab

from pipelines.common.parser import actions_of
from pipelines.common.value import Value

_FILES = ("SPEC", "SRC", "FILE", "FILES", "PUBLIC", "DST", "DESIGN", "REPORTS")
"""Placeholders of paths in the help of arguments."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Completion(Value):
    """A script for a shell.

    Attributes:
        shell: Name of the shell.
        script: Its text.
    """

    shell: str
    script: str = field(repr=False)

    def text(self) -> str:
        """Return the text that `slackwater completion` prints."""
        return self.script


def completion(parser: argparse.ArgumentParser, shell: str) -> Completion:
    """Make a script that completes commands and flags.

    Args:
        parser: Parser of all commands.
        shell: bash, zsh or fish.
    """
    for action in actions_of(parser):
        if action.metavar in _FILES:
            action.complete = shtab.FILE  # type: ignore[attr-defined]  # where shtab looks for it
    return Completion(shell=shell, script=shtab.complete(parser, shell))
