"""Slackwater from Python: the commands as functions, and one transform for your own pipelines.

    spec = slackwater.load("wards.yaml")              # read and checked
    print(slackwater.plan(spec).text())               # cost and margins of error; reads no data
    slackwater.run(spec)                              # sample noise and publish the windows that have closed
    slackwater.show(spec).table.to_pandas()           # all published estimates, as an Arrow table

Each command of `slackwater` is a function of the same name, with the options of the command as parameters; commands of
`slackwater local` are in `slackwater.local`. Each returns a value with two methods: `to_json()` returns the document
that the command prints with `--json`, and `text()` the text that it prints otherwise.

An error that a person can correct is a `SlackwaterError`: a `SpecError`, `InputError` or `RefusedError`. Its message
has one line for each problem. docs/python.md shows how to use them.
"""

from pipelines.answer.operation import Answered, answer
from pipelines.audit.audited import Audited
from pipelines.audit.operation import audit
from pipelines.changelog.operation import CheckedChangelog, changelog
from pipelines.common.errors import ArgumentError
from pipelines.compact.operation import Compacted, compact
from pipelines.evaluate.compared import ComparedErrors, compare_errors
from pipelines.evaluate.operation import Evaluated, evaluate
from pipelines.init.operation import FirstSpec, init
from pipelines.ledger.operation import ReleaseLedger, ledger
from pipelines.local.ledger import DevicesLedger
from pipelines.metrics.operation import metrics
from pipelines.metrics.values import Metrics
from pipelines.plan.operation import Planned, plan
from pipelines.plan.page import plan_page
from pipelines.plan.variants import ComparedPlans, compare_plans
from pipelines.registry.operation import RegistryEntry, registry
from pipelines.report.operation import report
from pipelines.report.reported import Reported
from pipelines.run.new_release import Begun, new_release
from pipelines.run.operation import Ran, run
from pipelines.sanitised.ledger import RecordsLedger
from pipelines.sanitised.operation import PlannedRecords, Records, plan_records, sanitise
from pipelines.show.operation import Shown, show
from pipelines.simulate.operation import Simulated, simulate
from pipelines.smooth.operation import Smoothed, smooth
from pipelines.spec.load import Spec, load
from slackwater import local
from slackwater.transform import Release
from transforms.common.errors import InputError, RefusedError, SlackwaterError, SpecError

__all__ = [
    "Answered",
    "ArgumentError",
    "Audited",
    "Begun",
    "CheckedChangelog",
    "Compacted",
    "ComparedErrors",
    "ComparedPlans",
    "DevicesLedger",
    "Evaluated",
    "FirstSpec",
    "InputError",
    "Metrics",
    "Planned",
    "PlannedRecords",
    "Ran",
    "Records",
    "RecordsLedger",
    "RefusedError",
    "RegistryEntry",
    "Release",
    "ReleaseLedger",
    "Reported",
    "Shown",
    "Simulated",
    "SlackwaterError",
    "Smoothed",
    "Spec",
    "SpecError",
    "answer",
    "audit",
    "changelog",
    "compact",
    "compare_errors",
    "compare_plans",
    "evaluate",
    "init",
    "ledger",
    "load",
    "local",
    "metrics",
    "new_release",
    "plan",
    "plan_page",
    "plan_records",
    "registry",
    "report",
    "run",
    "sanitise",
    "show",
    "simulate",
    "smooth",
]
