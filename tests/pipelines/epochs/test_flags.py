"""Flags that the command line hands on to Beam, which itself skips those that it does not know."""

import pytest

from pipelines.epochs.flags import EMBEDDED_RUNNER, options_of
from transforms.common.errors import SpecError


def test_the_embedded_runner_is_the_default() -> None:
    assert options_of([]).get_all_options()["runner"] == EMBEDDED_RUNNER


@pytest.mark.slow
@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--untl=2026-01-01T00:00:00Z"], "--untl: not a flag of this command.*did you mean --until"),
        (["--runner=FlinkRunner", "--untill", "2026-01-01T00:00:00Z"], "did you mean --until"),
        (["--assume-complet"], "did you mean --assume-complete"),
        (["--runs", "3"], "--runs: not a flag of this command.*see --help"),
        (["--paralelism=2"], "--paralelism: not a flag of this command"),
        (["other.yaml"], "other.yaml: one spec at a time"),
        (["--direct_running_mode=multi_threading"], "loses rows"),
    ],
)
def test_flags_without_a_meaning_are_refused(flags: list[str], message: str) -> None:
    with pytest.raises(SpecError, match=message):
        options_of(flags)


def test_a_job_server_may_have_options_that_are_not_known_here() -> None:
    options = options_of(["--runner=FlinkRunner", "--some_option_of_the_job_server=3"])

    assert options.get_all_options(retain_unknown_options=True)["some_option_of_the_job_server"] == "3"
