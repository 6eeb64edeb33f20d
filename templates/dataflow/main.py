"""Program of the Flex Template: a Dataflow job of one step, in which one worker is the driver of a release.

A Flex Template's launcher builds a job and ends before the job starts, so it cannot publish after a run. Here the job
itself is `slackwater run`: it computes on its worker and then publishes. Dataflow may run a step twice, or again after
a failure. The release store allows this: it commits only one attempt at an epoch.
"""

import argparse
import subprocess
import sys
from collections.abc import Sequence

import apache_beam as beam
from apache_beam.options.pipeline_options import PipelineOptions


def drive(command: Sequence[str]) -> None:
    """Run the driver in a separate process.

    Raises:
        RuntimeError: the driver failed; the text is its message, which never holds a value of the data.
    """
    done = subprocess.run([sys.executable, "-m", "pipelines", *command], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        said = [line for line in done.stderr.splitlines() if line.startswith("slackwater: ")]
        raise RuntimeError("\n".join(said) or f"the driver ended with exit code {done.returncode}")


def main(argv: Sequence[str]) -> None:
    """Build the job. The launcher adds other arguments, which are Beam's."""
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("--spec", required=True)
    parser.add_argument("--until")
    parser.add_argument("--shards")
    arguments, flags = parser.parse_known_args(argv)
    given = {"until": arguments.until, "shards": arguments.shards}
    command = ["run", arguments.spec, *(f"--{name}={value}" for name, value in given.items() if value)]
    with beam.Pipeline(options=PipelineOptions(flags, save_main_session=False, sdk_location="container")) as pipeline:
        pipeline | "Driver" >> beam.Create([command], reshuffle=False) | "Run" >> beam.Map(drive)


if __name__ == "__main__":
    main(sys.argv[1:])
