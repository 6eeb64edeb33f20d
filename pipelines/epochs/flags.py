"""Beam's pipeline options: flags that mean nothing or lose rows are refused before any work."""

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

from pipelines.commands import own_flags
from pipelines.spec.load import Spec
from transforms.common.errors import SpecError

EMBEDDED_RUNNER = "FnApiRunner"
EMBEDDED_RUNNERS = (EMBEDDED_RUNNER, "DirectRunner", "BundleBasedDirectRunner")


def begin_pipeline(flags: Sequence[str]) -> beam.Pipeline:
    """Return a pipeline with the options of these flags.

    Raises:
        SpecError: As `options_of`.
    """
    options = options_of(flags)
    if is_in_ipython():
        _meet_notebook()
    try:
        return beam.Pipeline(options=options)
    except ValueError as error:  # the runner is unknown or needs another option
        raise SpecError(f"pipeline options: {' '.join(str(error).split())}") from None


def _meet_notebook() -> None:
    """Let Beam look once, without a warning, for notebook packages, which are not needed here."""
    logger = logging.getLogger("apache_beam.runners.interactive.interactive_environment")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        importlib.import_module(logger.name).current_env()
    finally:
        logger.setLevel(level)


_STDERR = threading.Lock()
"""Lock of the process's stderr: a second thread that redirects it would later restore the first one's redirection."""


def options_of(flags: Sequence[str]) -> PipelineOptions:
    """Return Beam's options from the flags that the command line does not know.

    Raises:
        SpecError: A flag is unknown (Beam alone would ignore a misspelt `--until`), or it selects a mode of the
            embedded runner that loses rows.
    """
    flags = list(flags)
    if not any(flag == "--runner" or flag.startswith("--runner=") for flag in flags):
        flags.append(f"--runner={EMBEDDED_RUNNER}")
    _refuse(tuple(flags))
    options = PipelineOptions(flags)
    # Workers have our code installed; pickling the main session would include the command line.
    options.view_as(SetupOptions).save_main_session = False
    return options


@lru_cache(maxsize=1)
def _refuse(flags: Sequence[str]) -> None:
    """Refuse wrong flags. The result is cached, since a command checks them often and Beam lists its flags slowly."""
    options = PipelineOptions([*flags])
    _refuse_wrong_values(options)
    _refuse_unknown(options, flags)
    if options.get_all_options().get("direct_running_mode") == "multi_threading":
        raise SpecError(
            "--direct_running_mode=multi_threading silently loses rows in this version of Beam, "
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


def refuse_local_paths(spec: Spec, flags: Sequence[str]) -> None:
    """Refuse paths of this machine for Dataflow. Whether a Flink cluster can read them is unknown here.

    Raises:
        SpecError: A path is on this machine, but Dataflow's workers are on other machines.
    """
    if options_of(flags).view_as(StandardOptions).runner != "DataflowRunner":
        return
    paths = [("changelog.path", path) for path in spec.changelog.source.paths]
    paths += [("changelog.source.kafka", spec.changelog.source.kafka)] if spec.changelog.source.kafka else []
    paths += [("output.public", spec.output.public), ("output.private", spec.output.private)]
    paths += [("output.witness", spec.output.witness)] if spec.output.witness else []
    for key, path in paths:
        if "://" not in path:
            raise SpecError(
                f"{spec.path}: {key}: {path!r} is on this machine, where Dataflow's workers cannot read it; "
                "put it on gs://"
            )


def is_rehearsal(flags: Sequence[str]) -> bool:
    """Return whether the flags ask Dataflow only to check a job, or to write it down.

    Raises:
        SpecError: The flags are for another runner, which would run the job anyway.
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
    """Return whether all workers are on this machine and share its disk."""
    return options_of(flags).view_as(StandardOptions).runner in EMBEDDED_RUNNERS


def is_streaming(flags: Sequence[str]) -> bool:
    """Return whether Beam's flag `--streaming` is given.

    Raises:
        SpecError: The runner does not support streams.
    """
    options = options_of(flags).view_as(StandardOptions)
    if options.streaming and options.runner in EMBEDDED_RUNNERS:
        raise SpecError(
            f"--streaming: {options.runner} has no endless streams; take a runner that has, such as "
            "--runner=FlinkRunner, or start `slackwater run` after each window's end"
        )
    return bool(options.streaming)


def _refuse_wrong_values(options: PipelineOptions) -> None:
    """Refuse wrong values in one line; Beam would print a list of all its options and exit."""
    printed = io.StringIO()
    try:
        with _STDERR, redirect_stderr(printed):
            options.get_all_options()
    except SystemExit:
        raise SpecError(f"pipeline options: {printed.getvalue().splitlines()[-1].partition('error: ')[2]}") from None


def _refuse_unknown(options: PipelineOptions, flags: Sequence[str]) -> None:
    """Refuse unknown flags, unless a remote runner's job server may know them."""
    if not flags[0].startswith("-"):
        raise SpecError(f"{flags[0]}: one spec at a time; flags begin with --")
    known = options.get_all_options()
    for name in (one for one in options.get_all_options(retain_unknown_options=True) if one not in known):
        meant = difflib.get_close_matches(name, own_flags(), 1)
        if meant or known["runner"] in EMBEDDED_RUNNERS:
            near = meant and meant[0] != name
            hint = f"did you mean --{meant[0]}?" if near else "see --help for all flags"
            raise SpecError(f"--{name}: not a flag of this command, nor a Beam pipeline option; {hint}")
