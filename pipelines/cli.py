"""The command line: `slackwater COMMAND ...`, with the commands of `pipelines.commands`.

Flags that a command does not have are Beam pipeline options. Results go to stdout (`--json`: one JSON document and
nothing else), progress and errors to stderr. Exit codes: 0 done, 1 refused, 2 a usage or spec error, 3 bad input data,
4 a failure of the engine.
"""

import atexit
import errno
import json
import logging
import os
import sys
import traceback
from collections.abc import Sequence
from contextlib import suppress
from functools import partial

from pipelines import process
from pipelines.commands import COMMANDS, flags_of, parser_of, prepare
from pipelines.common.errors import ArgumentError
from transforms.common.errors import SlackwaterError

_OWN = ("pipelines.", "transforms.", "privacy.", "slackwater.", "__main__")


def program() -> int:
    """Run `slackwater` with the arguments of the process, which ends with this exit code."""
    codes: list[int] = []
    atexit.register(_end, codes)  # the first to be registered is the last to run
    codes.append(main(alone=True))
    return codes[0]


def _end(codes: Sequence[int]) -> None:
    """End the process before the interpreter is taken apart: a thread of Arrow that calls Python then would abort it.

    Args:
        codes: the exit code; empty if the command failed with an exception.
    """
    for code in codes:
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError):
                stream.flush()
        os._exit(code)


def main(argv: Sequence[str] | None = None, *, alone: bool = False) -> int:
    """Run one command, and return the exit code.

    Args:
        argv: The arguments; None: those of the process.
        alone: Whether the process does nothing else.
    """
    typed = sys.argv[1:] if argv is None else argv
    commands = [one for one in typed if one in COMMANDS] or typed[:1]  # pipeline options may come before the command
    given, flags = parser_of(*commands).parse_known_args(typed)
    # A remote runner reports failures as log lines that may quote data; pipelines.epochs.failures keeps them private.
    logging.basicConfig(level=logging.CRITICAL)
    try:
        # Imported only here, since Beam is slow to import and warns about missing clients that are not needed.
        command = process.load(partial(prepare, given, flags), flags) if alone else prepare(given, flags)
        value = command()
        said = json.dumps(value.to_json(), indent=1) if given.json else value.text()
    except SlackwaterError as error:
        told = error.named(flags_of(given.parser)) if isinstance(error, ArgumentError) else str(error)
        print("\n".join(f"slackwater: {line}" for line in told.splitlines()), file=sys.stderr)
        return error.exit_code
    except OSError as error:  # about a path in a flag; commands report errors of other files themselves
        return _refused(error.filename or "a file", error)
    except KeyboardInterrupt:
        print("slackwater: interrupted; run it again to complete it: published windows stay", file=sys.stderr)
        return 4
    except Exception as error:  # a traceback would show its text, which may quote data
        failed = f"{given.command} failed with {type(error).__name__} in {_place(error)}"
        print(f"slackwater: {failed}, a fault of the program; report it with this line", file=sys.stderr)
        return 4
    try:
        print(said, flush=True)
    except BrokenPipeError:  # the reader, such as `head`, has ended
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError as error:
        return _refused("the output of the command, which is done", error)
    return getattr(value, "exit_code", 0)


def _refused(where: str, error: OSError) -> int:
    """Report that a file cannot be read or written, and return the exit code."""
    full = error.errno in (errno.ENOSPC, errno.EDQUOT)
    advice = "free space, then run the command again" if full else "check the path and your rights"
    print(f"slackwater: {where}: {error.strerror or type(error).__name__}; {advice}", file=sys.stderr)
    return 4


def _place(error: Exception) -> str:
    """Return module and line of the innermost of Slackwater's own code that an error has passed."""
    passed = traceback.walk_tb(error.__traceback__)
    places = [f"{frame.f_globals['__name__']}:{line}" for frame, line in passed]
    return [place for place in places if place.startswith(_OWN)][-1]


if __name__ == "__main__":
    sys.exit(main())
