"""The flags of Beam's that a command takes: refused where they mean nothing or lose rows.

What is wrong with a flag is said before any work.
"""

import difflib
import importlib
import io
import logging
import threading
from collections.abc import Sequence
from contextlib import redirect_stderr
from functools import lru_cache

import apache_beam as beam
from apache_beam.options.pipeline_options import PipelineOptions, SetupOptions, StandardOptions
from apache_beam.runners.runner import create_runner
from apache_beam.utils.interactive_utils import is_in_ipython

from pipelines.spec.load import Spec
from transforms.common.errors import SpecError

EMBEDDED_RUNNER = "FnApiRunner"
EMBEDDED_RUNNERS = (EMBEDDED_RUNNER, "DirectRunner", "BundleBasedDirectRunner")
OWN_FLAGS = ("until", "shards", "json", "runs", "truth", "new-release", "poll", "lag", "suggest", "bad-rows")


def begin_pipeline(flags: Sequence[str]) -> beam.Pipeline:
    """A pipeline with the options of these flags.

    Raises:
        SpecError: as `options_of`.
    """
    options = options_of(flags)
    if is_in_ipython():
        _meet_notebook()
    try:
        return beam.Pipeline(options=options)
    except ValueError as error:  # an unknown runner, or one that misses an option
        raise SpecError(f"pipeline options: {' '.join(str(error).split())}") from None


def _meet_notebook() -> None:
    """Let Beam look once for what shows collections in a notebook, which nothing here needs, without a warning."""
    logger = logging.getLogger("apache_beam.runners.interactive.interactive_environment")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        importlib.import_module(logger.name).current_env()
    finally:
        logger.setLevel(level)


_STDERR = threading.Lock()
"""It is the whole process's: of two threads that take it at once, the second would put back what the first has set."""


def options_of(flags: Sequence[str]) -> PipelineOptions:
    """Beam's options from the flags that the command line does not know.

    Raises:
        SpecError: a flag that nobody knows (Beam itself would skip a misspelt `--until`), or a mode of the embedded
            runner that loses rows.
    """
    flags = list(flags)
    if not any(flag == "--runner" or flag.startswith("--runner=") for flag in flags):
        flags.append(f"--runner={EMBEDDED_RUNNER}")
    _refuse(tuple(flags))
    options = PipelineOptions(flags)
    # Workers find our code installed; pickling the main session would carry the command line along.
    options.view_as(SetupOptions).save_main_session = False
    return options


@lru_cache(maxsize=1)
def _refuse(flags: Sequence[str]) -> None:
    """A command asks for its flags many times, and Beam takes a while to list all that it knows."""
    options = PipelineOptions([*flags])
    _refuse_wrong_values(options)
    _refuse_unknown(options, flags)
    if options.get_all_options().get("direct_running_mode") == "multi_threading":
        raise SpecError(
            "--direct_running_mode=multi_threading loses rows without a word in this version of Beam, "
            "so it is refused: leave it out, or use multi_processing"
        )
    if options.get_all_options(retain_unknown_options=True).get("no_wait_until_finish"):
        raise SpecError(
            "--no_wait_until_finish: a run commits what its pipeline has written, so it waits; leave it out"
        )
    try:
        create_runner(options.view_as(StandardOptions).runner)
    except (ValueError, ImportError) as error:
        raise SpecError(f"--runner: {' '.join(str(error).split())[:200]}") from None


def refuse_any(flags: Sequence[str], command: str) -> None:
    """
    Raises:
        SpecError: there are flags, and the command runs no pipeline.
    """
    if flags:
        raise SpecError(
            f"{flags[0]}: {command} runs no pipeline and takes no pipeline options, and has no such flag of its own; "
            f"see `slackwater {command} --help`"
        )


def refuse_local_paths(spec: Spec, flags: Sequence[str]) -> None:
    """
    Raises:
        SpecError: a path of this machine, for Dataflow, whose workers are other ones. What it means to a Flink cluster
            cannot be known here.
    """
    if options_of(flags).view_as(StandardOptions).runner != "DataflowRunner":
        return
    paths = [("changelog.path", path) for path in spec.changelog.source.paths]
    paths += [("changelog.source.kafka", spec.changelog.source.kafka)] if spec.changelog.source.kafka else []
    paths += [("output.public", spec.output.public), ("output.private", spec.output.private)]
    for key, path in paths:
        if "://" not in path:
            raise SpecError(
                f"{spec.path}: {key}: {path!r} is a path of this machine, and Dataflow's workers are others; "
                "put it on gs://"
            )


def is_rehearsal(flags: Sequence[str]) -> bool:
    """Whether Dataflow is only asked to check a job, or to write it down.

    Raises:
        SpecError: another runner is asked so, which would run the job all the same.
    """
    return _is_rehearsal(tuple(flags))


@lru_cache(maxsize=1)
def _is_rehearsal(flags: Sequence[str]) -> bool:
    options = options_of(flags).get_all_options(retain_unknown_options=True)
    asked = [name for name in ("dry_run", "template_location") if options.get(name)]
    if asked and options["runner"] != "DataflowRunner":
        raise SpecError(f"--{asked[0]}: is for --runner=DataflowRunner; plan shows a release without running it")
    return bool(asked)


def is_embedded(flags: Sequence[str]) -> bool:
    """Whether all workers are on this machine, and share its disk."""
    return options_of(flags).view_as(StandardOptions).runner in EMBEDDED_RUNNERS


def is_streaming(flags: Sequence[str]) -> bool:
    """Whether Beam's flag `--streaming` is given.

    Raises:
        SpecError: for a runner that has no streams.
    """
    options = options_of(flags).view_as(StandardOptions)
    if options.streaming and options.runner in EMBEDDED_RUNNERS:
        raise SpecError(
            f"--streaming: {options.runner} has no endless streams; take a runner that has, such as "
            "--runner=FlinkRunner, or start `slackwater run` after each window's end"
        )
    return bool(options.streaming)


def _refuse_wrong_values(options: PipelineOptions) -> None:
    """Beam answers them with a list of all its options and leaves the program: here it is one line."""
    printed = io.StringIO()
    try:
        with _STDERR, redirect_stderr(printed):
            options.get_all_options()
    except SystemExit:
        raise SpecError(f"pipeline options: {printed.getvalue().splitlines()[-1].partition('error: ')[2]}") from None


def _refuse_unknown(options: PipelineOptions, flags: Sequence[str]) -> None:
    """Refuse flags without a meaning; a remote runner's job server may have options that are not known here."""
    if not flags[0].startswith("-"):
        raise SpecError(f"{flags[0]}: one spec at a time; flags begin with --")
    known = options.get_all_options()
    for name in options.get_all_options(retain_unknown_options=True):
        meant = difflib.get_close_matches(name, OWN_FLAGS, 1)
        if name not in known and (meant or known["runner"] in EMBEDDED_RUNNERS):
            near = meant and meant[0] != name
            hint = f"did you mean --{meant[0]}?" if near else "see --help for those that there are"
            raise SpecError(f"--{name}: not a flag of this command, nor a Beam pipeline option; {hint}")
