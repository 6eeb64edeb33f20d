"""The commands of `slackwater`: one table, and the parser of their arguments.

A command is a folder with a module `command` whose function `arguments` adds the command's arguments to a parser, and a
module `operation` with a function of the command's name, which has parameters of the same names and returns a `Value`.
If the arguments choose among several functions, the module `command` also has `prepare(given, flags)`: it imports the
function that is meant, and returns it with its arguments.

Only what the command that runs needs is imported: half of a short command's time is imports.
"""

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib import import_module

from pipelines.common.parser import Parser, actions_of, leaves_of, named, refuse_any
from pipelines.common.value import Value
from pipelines.common.version import program


@dataclass(frozen=True, slots=True)
class Command:
    """An entry of the table.

    Attributes:
        folder: The package of the command.
        help: Summary in one line.
        pipeline: Whether the command takes Beam's pipeline options.
    """

    folder: str
    help: str
    pipeline: bool = False


COMMANDS = {
    "plan": Command(
        "pipelines.plan", "show a release's privacy parameters and the error of its numbers; reads no data"
    ),
    "run": Command("pipelines.run", "publish the windows that have closed", pipeline=True),
    "evaluate": Command(
        "pipelines.evaluate", "private: measure the errors of a spec on the data; publishes nothing", pipeline=True
    ),
    "ledger": Command("pipelines.ledger", "show what a release has published and spent"),
    "metrics": Command("pipelines.metrics", "print the state of a release in Prometheus's text format"),
    "compact": Command(
        "pipelines.compact", "merge small published files into larger ones; published values do not change"
    ),
    "init": Command("pipelines.init", "write a first spec from a few questions or flags"),
    "changelog": Command(
        "pipelines.changelog", "private: convert a changelog to Parquet and check it; suggest a spec", pipeline=True
    ),
    "smooth": Command(
        "pipelines.smooth", "estimate published counts and sums more exactly, from published numbers alone"
    ),
    "show": Command("pipelines.show", "print all published estimates as one table"),
    "simulate": Command("pipelines.simulate", "make a synthetic changelog from public rates, to try a spec on"),
    "answer": Command("pipelines.answer", "add up published cells that satisfy a condition"),
    "local": Command(
        "pipelines.local", "plan and evaluate surveys whose reports each person's own device randomises", pipeline=True
    ),
    "report": Command("pipelines.report", "write all published numbers as one HTML page with charts"),
    "registry": Command("pipelines.registry", "write an entry for the public registry of deployments; reads no data"),
    "sanitise": Command(
        "pipelines.sanitised", "add noise to single records, each once, before anything is computed from them"
    ),
    "audit": Command("pipelines.audit", "attack a spec's privacy claim with synthetic data, or check a public folder"),
    "completion": Command("pipelines.completion", "print a script that completes commands and flags in a shell"),
}
"""Commands by name, in the order of `slackwater --help`."""


def parser_of(*commands: str) -> argparse.ArgumentParser:
    """Return the parser of the program, with the arguments of these commands; without names, of all commands."""
    parser: argparse.ArgumentParser = Parser(
        prog="slackwater",
        allow_abbrev=False,
        description="Publish statistics continually from a changing database, under one privacy budget.",
        epilog="Other flags are Beam pipeline options, such as --runner=FlinkRunner.",
    )
    parser.add_argument("--version", action="version", version=f"slackwater {program()}")
    added = parser.add_subparsers(required=True, metavar="COMMAND")
    for name, entry in COMMANDS.items():
        one = added.add_parser(name, help=entry.help, description=entry.help, allow_abbrev=False)
        one.set_defaults(command=name, parser=one)
        if name in (commands or COMMANDS):
            import_module(f"{entry.folder}.command").arguments(one)
            for inner in leaves_of(one):
                inner.add_argument("--json", action="store_true", help="Print one JSON document instead of text.")
    return parser


def prepare(given: argparse.Namespace, flags: list[str]) -> Callable[[], Value]:
    """Import a command, and return it with its arguments.

    Raises:
        SpecError: There are flags that the command does not take.
    """
    entry = COMMANDS[given.command]
    if not entry.pipeline:
        refuse_any(flags, given.command)
    module = import_module(f"{entry.folder}.command")
    if hasattr(module, "prepare"):
        special: Callable[[], Value] = module.prepare(given, flags)
        return special
    operation = getattr(import_module(f"{entry.folder}.operation"), given.command)
    return partial(operation, **named(given), **({"options": flags} if entry.pipeline else {}))


def flags_of(parser: argparse.ArgumentParser) -> dict[str, str]:
    """Return the name on the command line of each parameter of a command: `-o` for `output`, SPEC for `spec`."""
    return {
        action.dest: action.option_strings[0] if action.option_strings else str(action.metavar or action.dest)
        for action in actions_of(parser)
    }


def own_flags() -> set[str]:
    """Return the names of all flags of commands that also take pipeline options."""
    parsers = (parser_of(name) for name, entry in COMMANDS.items() if entry.pipeline)
    flags = (flag for parser in parsers for action in actions_of(parser) for flag in action.option_strings)
    return {flag.removeprefix("--") for flag in flags if flag.startswith("--")}
