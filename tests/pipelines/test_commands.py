"""The table of commands: a new one is a folder and an entry, and Python has what the command line has."""

import inspect
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

import pytest

import slackwater
from pipelines import cli, commands
from pipelines.commands import COMMANDS, Command, parser_of
from pipelines.common.parser import leaves_of
from pipelines.completion.operation import completion
from tests.test_house import PACKAGES, ROOT, imported, modules


def operations(command: str) -> list[Callable[..., Any]]:
    """Return the functions of a command: those of its folder in `slackwater`.

    `completion` is about the command line itself, so it is not in `slackwater`.
    """
    name, _, inner = command.partition(" ")
    if inner:
        return [getattr(getattr(slackwater, name), inner)]
    folder = commands.COMMANDS[name].folder
    functions = [*filter(inspect.isfunction, vars(slackwater).values()), completion]
    return [one for one in functions if one.__module__.startswith(f"{folder}.")]


NOT_SHARED = {
    "sanitise": {"plan"},  # has a separate function
    "completion": {"parser"},
}
OF_ALL = {"help", "json", "version"}


def parameters(operation: Callable[..., Any]) -> set[str]:
    """Return the names of the parameters of a function, and of its typed keywords."""
    names = set()
    for name, parameter in inspect.signature(operation).parameters.items():
        if parameter.kind is inspect.Parameter.VAR_KEYWORD:
            (keywords,) = get_args(get_type_hints(operation)[name]) or (get_origin(parameter.annotation),)
            names |= {*get_type_hints(keywords)}
        else:
            names.add(name)
    return names - {"options"}


def test_python_has_the_commands_of_the_command_line_with_the_same_options() -> None:
    told = {
        parser.prog.removeprefix("slackwater "): {action.dest for action in parser._actions} - OF_ALL
        for parser in leaves_of(parser_of())
    }

    assert len(told) > 15
    for command, flags in told.items():
        known = set().union(*map(parameters, operations(command)))
        assert known ^ flags == NOT_SHARED.get(command, set()), command


def test_pipeline_options_may_come_before_the_command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(cli, "parser_of", parser_of)  # tests keep parsers

    code = cli.main(["--runner=DirectRunner", "run", "missing.yaml"])

    assert code == 2
    assert capsys.readouterr().err.startswith("slackwater: missing.yaml: ")


PARSING = {"pipelines/commands.py", "pipelines/common/parser.py", "pipelines/completion/operation.py"}
"""Files besides each command's own that know the parser of arguments."""


@pytest.mark.slow
def test_only_the_command_line_knows_the_parser() -> None:
    paths = (path for package in PACKAGES for path in modules(package) if "argparse" in imported(path))
    knowing = {str(path.relative_to(ROOT)) for path in paths}

    assert {path for path in knowing if not path.endswith("/command.py")} == PARSING


def test_every_result_has_a_document_and_a_text() -> None:
    values = [
        one for one in vars(slackwater).values() if inspect.isclass(one) and one.__module__.startswith("pipelines")
    ]
    results: list[Any] = [one for one in values if not issubclass(one, Exception) and one is not slackwater.Spec]

    assert len(results) > 15
    for one in results:
        assert callable(one.to_json), one
        assert callable(one.text), one
        assert one.__dataclass_params__.frozen, one


TOY = {
    "__init__.py": "",
    "operation.py": """
from dataclasses import dataclass

from pipelines.common.errors import ArgumentError


@dataclass(frozen=True)
class Greeted:
    name: str

    def to_json(self):
        return {"name": self.name}

    def text(self):
        return f"hello {self.name}"


def greet(name):
    if name == "nobody":
        raise ArgumentError("name", "expected somebody")
    return Greeted(name)
""",
    "command.py": """
def arguments(parser):
    parser.add_argument("--name", help="Name of the person.")
""",
}


def test_a_new_command_is_a_folder_and_an_entry_of_the_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "toy_command").mkdir()
    for name, text in TOY.items():
        (tmp_path / "toy_command" / name).write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(cli, "parser_of", parser_of)  # tests keep parsers
    monkeypatch.setitem(commands.COMMANDS, "greet", Command("toy_command", "greet somebody"))

    said = [cli.main(["greet", "--name", "you"]), cli.main(["greet", "--name", "you", "--json"])]
    wrong = [cli.main(["greet", "--name", "nobody"]), cli.main(["greet", "--name", "you", "--runner=x"])]
    with pytest.raises(SystemExit):
        cli.main(["--help"])

    told = capsys.readouterr()
    assert (said, wrong) == ([0, 0], [2, 2])
    assert told.out.startswith("hello you\n")
    assert json.loads(told.out[len("hello you\n") :].partition("usage")[0]) == {"name": "you"}
    assert told.err.splitlines()[0] == "slackwater: --name: expected somebody"
    assert told.err.splitlines()[1].startswith("slackwater: --runner=x: greet runs no pipeline")
    assert "greet somebody" in told.out
    assert "greet" in completion(parser_of(), "bash").text()
    assert "toy_command.operation" in sys.modules


def test_each_command_has_a_line_of_help_and_fits_the_screen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    for parser in leaves_of(parser_of()):
        assert [line for line in parser.format_help().splitlines() if len(line) > 100] == []
        for action in parser._actions:
            assert action.help, (parser.prog, action.dest)
            assert action.help[0].isupper() or action.dest == "help", (parser.prog, action.dest)
            assert action.help.endswith(".") or action.dest == "help", (parser.prog, action.dest)
    assert {parser.prog.split()[1] for parser in leaves_of(parser_of())} == set(COMMANDS)
