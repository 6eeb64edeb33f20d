"""The arguments of `slackwater completion`."""

import argparse
from collections.abc import Callable
from functools import partial

from pipelines.commands import parser_of
from pipelines.common.value import Value


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments to a parser."""
    parser.add_argument("shell", choices=("bash", "zsh", "fish"), help="Shell that reads the script.")


def prepare(given: argparse.Namespace, flags: list[str]) -> Callable[[], Value]:
    """Return the operation with its arguments."""
    from pipelines.completion.operation import completion

    return partial(completion, parser_of(), given.shell)
