"""Slackwater from Python: what the command line does, as functions, and one transform for pipelines of one's own.

    spec = slackwater.load("wards.yaml")     # read and checked
    print(slackwater.plan(spec))             # what it costs and how far off numbers will be; reads no data
    slackwater.run(spec)                     # sample noise and publish the windows that have closed
    slackwater.estimates(spec).to_pandas()   # what is published, as an Arrow table

What can be mended by a person is a `SlackwaterError`, in one line or one line for each problem: `SpecError`,
`InputError`, `RefusedError`. docs/python.md goes through all of it.
"""

from pipelines.spec.load import Spec, load
from slackwater.functions import answer, estimates, evaluate, plan, run, simulate
from slackwater.said import Evaluated, Planned, Ran, Simulated
from slackwater.transform import Release
from transforms.common.errors import InputError, RefusedError, SlackwaterError, SpecError

__all__ = [
    "Evaluated",
    "InputError",
    "Planned",
    "Ran",
    "RefusedError",
    "Release",
    "Simulated",
    "SlackwaterError",
    "Spec",
    "SpecError",
    "answer",
    "estimates",
    "evaluate",
    "load",
    "plan",
    "run",
    "simulate",
]
