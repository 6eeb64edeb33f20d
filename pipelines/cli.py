"""The command line: `slackwater plan | run | evaluate | ledger | metrics | compact | show | report | answer SPEC`,
`slackwater init SPEC`, `slackwater changelog SRC`, `slackwater smooth SPEC`, `slackwater sanitise SPEC`,
`slackwater completion SHELL`, and `slackwater local`, which has commands of its own.

Flags that are not listed here are Beam pipeline options. Results go to stdout (`--json`: one JSON document
and nothing else), progress and errors to stderr. Exit codes: 0 done, 1 refused, 2 a usage or spec error, 3 bad input
data, 4 a failure of the engine.
"""

import argparse
import json
import logging
import os
import re
import sys
from collections.abc import Sequence
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from typing import TypeAlias

from pipelines import process
from pipelines.changelog.arguments import add_changelog, add_init
from pipelines.commands import imported
from pipelines.local.arguments import add_local
from pipelines.parser import Parser
from pipelines.spec.durations import parse_duration, parse_length
from pipelines.spec.times import microseconds, parse_time
from transforms.common.errors import SlackwaterError

Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"
"""Where a parser of a command is added."""


def program() -> int:
    """`slackwater`."""
    return main(alone=True)


def main(argv: Sequence[str] | None = None, *, alone: bool = False) -> int:
    """Run one command; the exit code.

    Args:
        alone: whether the process does nothing else.
    """
    parser = _parser()
    arguments, flags = parser.parse_known_args(argv)
    # A remote runner hands its failures over as log lines that may quote data; pipelines.epochs.failures keeps them.
    logging.basicConfig(level=logging.CRITICAL)
    # Only now, since Beam is slow to import and warns about clients that nobody asked for.
    command = process.load(partial(imported, arguments), flags) if alone else imported(arguments)
    try:
        document, text = command(arguments, flags)
    except SlackwaterError as error:
        print("\n".join(f"slackwater: {line}" for line in str(error).splitlines()), file=sys.stderr)
        return error.exit_code
    except OSError as error:  # of what a flag names: what a command reads and writes itself it names itself
        where = error.filename or "a file"
        print(
            f"slackwater: {where}: {error.strerror or type(error).__name__}; check the path and your rights",
            file=sys.stderr,
        )
        return 4
    except KeyboardInterrupt:
        print("slackwater: interrupted; run it again to complete it: what was published stays", file=sys.stderr)
        return 4
    try:
        print(json.dumps(document, indent=1) if arguments.json else text, flush=True)
    except BrokenPipeError:  # the reader, such as `head`, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


def _parser() -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = Parser(
        prog="slackwater",
        allow_abbrev=False,
        description="Publish statistics again and again from a changing database, under one privacy budget.",
        epilog="Other flags are Beam pipeline options, such as --runner=FlinkRunner.",
    )
    parser.add_argument("--version", action="version", version=f"slackwater {_version()}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for name, summary in (
        ("plan", "noise, error and privacy parameters of a release; needs no data"),
        ("run", "release the windows that have closed"),
        ("evaluate", "private: the mechanism against the truth; publishes nothing"),
        ("ledger", "what a release has published and spent"),
        ("metrics", "how a release fares, as Prometheus reads it"),
        ("compact", "the many files of a long release as few, with the same rows"),
    ):
        added = _command(commands, name, summary)
        added.add_argument("spec", metavar="SPEC", help="the spec, a YAML file")
        if name == "metrics":
            added.add_argument("--private", action="store_true", help="also exact facts about people")
        if name in ("ledger", "metrics", "compact"):
            continue
        added.add_argument(
            "--until",
            metavar="T",
            type=_moment,
            help="windows that have closed by then (default: now)",
        )
        if name == "plan":
            _add_plan(added)
            continue
        added.add_argument("--shards", metavar="N", type=_count, help="into how many parts the units are split")
        if name == "run":
            added.add_argument(
                "--new-release",
                metavar="NAME",
                help="another release about the same people, under a spec and folders of its own; both budgets add up",
            )
            added.add_argument(
                "--poll",
                metavar="D",
                type=_duration,
                help="with --streaming: from one poll for new files to the next (default: 10s)",
            )
            added.add_argument(
                "--lag",
                metavar="D",
                type=_duration,
                help="with --streaming: how long after a window's end its files may still land (default: three polls)",
            )
            added.add_argument(
                "--assume-complete",
                action="store_true",
                help="publish what the clock says is over, though changelog.freshness does not know the source past it",
            )
        if name == "evaluate":
            added.add_argument(
                "--runs",
                metavar="N",
                type=_count,
                default=10,
                help="how often noise is sampled (default: 10)",
            )
            added.add_argument(
                "--truth",
                metavar="FILE",
                help="write exact and bounded numbers to this Parquet file",
            )
            added.add_argument("--compare", metavar="SPEC", nargs="+", help="the errors of these specs beside its own")
    add_init(commands)
    add_changelog(commands)
    _add_smooth(commands)
    _add_show(commands)
    _add_simulate(commands)
    _add_answer(commands)
    add_local(commands, moment=_moment)
    _add_report(commands)
    _add_sanitise(commands)
    _add_completion(commands, parser)
    return parser


def _command(commands: Commands, name: str, summary: str) -> argparse.ArgumentParser:
    added = commands.add_parser(name, help=summary, description=summary, allow_abbrev=False)
    added.set_defaults(command=name)
    added.add_argument("--json", action="store_true", help="print one JSON document")
    return added


def _add_completion(commands: Commands, parser: argparse.ArgumentParser) -> None:
    summary = "a script that completes commands and flags, for a shell to read"
    added = commands.add_parser("completion", help=summary, description=summary, allow_abbrev=False)
    added.set_defaults(command="completion", json=False, parser=parser)
    added.add_argument("shell", choices=("bash", "zsh", "fish"), help="which shell")


def _add_sanitise(commands: Commands) -> None:
    added = _command(commands, "sanitise", "single records, each made safe once, before anything is asked of them")
    added.add_argument("spec", metavar="SPEC", help="a spec of sanitised records, a YAML file")
    added.add_argument("--plan", action="store_true", help="say what it costs and how far off it is; reads no records")
    added.add_argument("--estimates", metavar="FILE", help="write what the sanitised records tell to this file")


def _add_plan(added: argparse.ArgumentParser) -> None:
    added.add_argument("--explain", action="store_true", help="all strategies, sensitivities and shares of the budget")
    added.add_argument("--html", metavar="FILE", help="also as a page for people")
    added.add_argument("--compare", metavar="SPEC", nargs="+", help="these specs side by side with it")
    added.add_argument(
        "--vary", metavar="KEY=V,V", action="append", help="the spec with these values, such as privacy.epsilon=0.5,1,2"
    )
    added.add_argument("--target", metavar="QUERY=N", help="the least epsilon with which a query is off by N at most")


def _add_smooth(commands: Commands) -> None:
    added = _command(commands, "smooth", "better guesses at published counts and sums, from what is published alone")
    added.add_argument("spec", metavar="SPEC", help="the spec, or the public folder of a release")
    added.add_argument("-o", dest="output", metavar="FILE", required=True, help="a .parquet, .csv or .jsonl file")
    added.add_argument("--query", metavar="NAME", action="append", help="this query; may repeat (default: all)")


def _add_answer(commands: Commands) -> None:
    added = _command(commands, "answer", "any further sum over published cells, from what is published alone")
    added.add_argument("spec", metavar="SPEC", help="the spec, or the public folder of its release")
    added.add_argument(
        "--where", metavar="CONDITION", help="which cells, such as 'age >= 18 and age < 65' (default: all)"
    )
    added.add_argument("--query", metavar="NAME", help="of a release with several queries")
    added.add_argument("--kind", metavar="KIND", help="level, change, sliding, entered or left (default: level)")
    added.add_argument("--width", metavar="D", type=_length, help="of sliding windows, if there are several widths")
    added.add_argument("--window", metavar="T", type=_moment, help="the window that ends then (default: all)")
    added.add_argument("--minus", metavar="T", type=_moment, help="less the sum of the window that ends then")


def _add_show(commands: Commands) -> None:
    added = _command(commands, "show", "the published estimates of all epochs as one table")
    added.add_argument("spec", metavar="SPEC", help="the spec, or the public folder of a release")
    added.add_argument("-o", dest="output", metavar="FILE", help="a .parquet, .csv, .jsonl, .md or .txt file")
    added.add_argument("--query", metavar="NAME", action="append", help="this query; may repeat (default: all)")


def _add_simulate(commands: Commands) -> None:
    added = _command(commands, "simulate", "a synthetic changelog, from public rates, to try a spec on")
    added.add_argument("spec", metavar="SPEC", help="whose columns, cells and windows it has")
    added.add_argument("-o", dest="output", metavar="FOLDER", required=True, help="a new folder for it and for a spec")
    added.add_argument("--arrivals", metavar="N", type=_positive, required=True, help="entries that come in a window")
    added.add_argument("--stay", metavar="D", type=_duration, required=True, help="how long they stay, in the mean")
    added.add_argument("--change", metavar="D", type=_duration, help="from one change to the next (default: none)")
    added.add_argument(
        "--burstiness", metavar="V", type=_positive, default=0.0, help="variance of how busy windows are (default: 0)"
    )
    added.add_argument(
        "--entries", metavar="N", type=_positive, default=1.0, help="of an owner, in the mean (default: 1)"
    )
    added.add_argument("--windows", metavar="N", type=_count, help="how many (default: the schedule's, or 100)")
    seed = partial(_count, least=0)
    added.add_argument("--seed", metavar="N", type=seed, help="Repeat the changelog that an earlier call with N made.")


def _positive(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number < 1e12:
        raise argparse.ArgumentTypeError(f"expected a number above 0, not {text!r}")
    return number


def _add_report(commands: Commands) -> None:
    added = _command(commands, "report", "what is published, as one page with charts for people")
    added.add_argument("spec", metavar="SPEC", help="the spec, or the public folder of a release")
    added.add_argument("-o", dest="output", metavar="FILE", default="report.html", help="default: report.html")


def _version() -> str:
    try:
        return version("slackwater")
    except PackageNotFoundError:
        return "of a checkout that is not installed"


def _moment(text: str) -> int:
    try:
        return microseconds(parse_time(text))
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _duration(text: str) -> int:
    try:
        duration = parse_duration(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    if duration == 0:
        raise argparse.ArgumentTypeError("expected a duration above zero, such as 10s")
    return duration


def _length(text: str) -> int:
    try:
        return parse_length(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _count(text: str, least: int = 1) -> int:
    if not re.fullmatch(r"\d{1,18}", text, re.ASCII) or int(text) < least:
        raise argparse.ArgumentTypeError(f"expected a whole number of at least {least}, not {text[:40]!r}")
    return int(text)


if __name__ == "__main__":
    sys.exit(main())
