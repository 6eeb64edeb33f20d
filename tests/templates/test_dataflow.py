"""Offline checks of the job for Dataflow, the Flex Template and the driver's manifest."""

import argparse
import json
import re
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
import yaml
from google.cloud.dataflow_v1beta3 import LaunchFlexTemplateParameter, TemplateMetadata

from pipelines.cli import main
from pipelines.commands import parser_of
from pipelines.epochs.flags import options_of
from pipelines.spec.load import load
from pipelines.spec.times import parse_time
from templates.dataflow import main as flex
from tests.e2e.specs import KEY, SECRETS, WARD, changelog, files_under, write, write_spec
from tests.templates.graphs import DATAFLOW, REMOTE, Graph, built, gcs, graph, names, slackwater, upload
from tests.templates.schemas import is_valid
from transforms.common.errors import SpecError

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "templates/dataflow"
STEPS = Path(__file__).parent / "steps.txt"

NOT_OFFERED = {"help", "json", "new_release", "streaming", "lag", "poll", "assume_complete"}
"""Options of `run` that a scheduled batch job does not need; the last is for a person who has inspected the source."""

SMALL = {
    "ReadChangelog/Files": "a file's path and number",
    "ReadChangelog/CutIntoSplits": "a file's path, number and row groups",
    "ReadChangelog/ShareAmongWorkers": "the same",
    "ReadChangelog/ReadSplits/ParDo(_ReadDoFn).read": "a file's path and two counts",
    "WriteDiagnostics/DeadToBytes": "bytes; of a side input Dataflow's runner forgets that, and packs them as they are",
}
"""Values without a separate coder; everything else moves as bytes, text, integers or Arrow."""


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    return built(tmp_path_factory.mktemp("job"), "--until=2026-01-03T00:00:00Z", files=3)


def test_only_small_control_values_may_be_pickled(job: Graph) -> None:
    loose = {name for name, coder in job.coder_of().items() if job.loose(coder)}

    assert {name for name in loose if not name.startswith(tuple(SMALL))} == set()
    assert {small for small in SMALL if any(name.startswith(small) for name in loose)} == set(SMALL)


def test_names_of_steps_are_unique_recorded_and_the_same_for_other_data(job: Graph, tmp_path: Path) -> None:
    other = built(tmp_path, "--shards=3", "--until=2026-01-04T00:00:00Z", files=1)

    assert len(set(job.steps)) == len(job.steps)
    ours = named_by_us(job)
    assert ours == named_by_us(other)
    assert ours == STEPS.read_text().splitlines(), f"if that is meant, write the new names into {STEPS.name}"


def named_by_us(job: Graph) -> list[str]:
    """Return names of our steps. Steps below them belong to Beam, and change with its version."""
    return sorted({"/".join(step.split("/")[:2]) for step in job.steps})


def test_a_job_shows_no_paths_of_this_machine_and_holds_no_value_of_the_data(
    job: Graph, tmp_path_factory: pytest.TempPathFactory
) -> None:
    shown, content = job.shown(), job.content()

    for path in (str(ROOT), str(Path.home()), str(tmp_path_factory.getbasetemp()), sys.prefix, "spec.yaml"):
        assert path not in shown
    for secret in SECRETS:
        assert secret.encode() not in content
    # The search works: it finds words of Dataflow and of ours.
    assert "_ProjectDoFn" in shown
    assert b"beds" in content


def test_a_job_runs_our_image_and_stages_no_package(job: Graph) -> None:
    environment = json.loads(job.job)["environment"]
    (pool,) = environment["workerPools"]

    assert {image["containerImage"] for image in pool["sdkHarnessContainerImages"]} == {DATAFLOW[4].partition("=")[2]}
    assert [package["name"] for package in pool["packages"]] == ["submission_environment_dependencies.txt"]


def test_a_dry_run_publishes_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with gcs() as client:
        upload(client, tmp_path, files=1)

        code = slackwater(tmp_path / "run", "run", "gs://in/spec.yaml", *DATAFLOW, "--dry_run=True")

        assert code == 0
        assert capsys.readouterr().out == "wards: the job is valid; nothing was run, and nothing published\n"
        left = {name for name in names(client, "") if not name.startswith("temp/")}
        assert left == set()


@pytest.mark.parametrize("key", ["changelog.path", "output.public", "output.private"])
def test_paths_of_this_machine_are_refused(
    key: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    changes = dict(zip(("changelog.path", "output.public", "output.private"), REMOTE, strict=True))
    del changes[key]
    monkeypatch.chdir(tmp_path)
    write_spec(tmp_path, *changes.values())

    code = main(["run", "spec.yaml", *DATAFLOW])

    told = capsys.readouterr().err
    assert code == 2
    assert re.fullmatch(rf"slackwater: spec\.yaml: {key}: '.*' is on this machine, .*\n", told)


def test_a_spec_on_gs_is_read_and_a_missing_spec_is_named(tmp_path: Path) -> None:
    with gcs() as client:
        upload(client, tmp_path, files=1)

        assert load("gs://in/spec.yaml").text == (tmp_path / "spec.yaml").read_text()
        with pytest.raises(SpecError, match=r"^gs://in/none\.yaml: cannot be read"):
            load("gs://in/none.yaml")
        client.bucket("in").blob("wrong.yaml").upload_from_string("release: [")
        with pytest.raises(SpecError, match=r"^gs://in/wrong\.yaml:1: release: the bracket"):
            load("gs://in/wrong.yaml")


def test_the_template_releases_once_even_if_its_step_runs_twice(tmp_path: Path) -> None:
    spec = local(tmp_path)

    flex.main([f"--spec={spec}", "--runner=FnApiRunner", "--direct_runner_bundle_repeat=1"])

    assert [path.name for path in files_under(tmp_path / "private/commits")] == ["000001.json"]
    assert len(json.loads((tmp_path / "public/manifest.json").read_text())["epochs"]) == 1


def test_the_template_fails_with_the_drivers_message_and_no_value_of_the_data(tmp_path: Path) -> None:
    spec = local(tmp_path)
    (tmp_path / "data/late.parquet").write_bytes(f"{KEY} {WARD}".encode())

    with pytest.raises(RuntimeError, match=r"late\.parquet: .*cannot be read") as failed:
        flex.drive(["run", str(spec)])

    assert not any(secret in str(failed.value) for secret in SECRETS)
    assert not (tmp_path / "public/manifest.json").exists()


def test_the_launcher_builds_a_job_of_one_step_without_waiting_for_it(tmp_path: Path) -> None:
    parameters = ["--spec=gs://in/spec.yaml", "--until=2026-01-04T00:00:00Z"]
    with gcs() as client:
        flex.main([*parameters, *DATAFLOW, "--template_location=gs://out/templates/job.json"])

        told = graph(client, "templates/job.json")

    assert {step.split("/")[0] for step in told.steps} == {"Driver", "Run"}
    assert b"gs://in/spec.yaml" in told.content()


def local(folder: Path) -> Path:
    """Return a spec with absolute paths, since the driver is a separate process."""
    write(folder / "data/all.parquet", changelog())
    return write_spec(
        folder,
        ("data/*.parquet", f"{folder}/data/*.parquet"),
        ("public: public", f"public: {folder}/public"),
        ("private: private", f"private: {folder}/private"),
    )


def options_of_run() -> set[str]:
    (commands,) = (action for action in parser_of()._actions if isinstance(action, argparse._SubParsersAction))
    return {action.dest for action in commands.choices["run"]._actions}


def test_the_templates_parameters_are_the_options_of_run() -> None:
    metadata = TemplateMetadata.from_json((FOLDER / "metadata.json").read_text())

    assert {parameter.name for parameter in metadata.parameters} == options_of_run() - NOT_OFFERED
    assert [parameter.name for parameter in metadata.parameters if not parameter.is_optional] == ["spec"]


@pytest.mark.parametrize("moment", ["2026-02-01T00:00:00Z", "2026-02-01T00:00:00+01:00", "2026-02-01T00:00:00.5Z"])
def test_the_template_accepts_the_times_that_run_accepts(moment: str) -> None:
    metadata = TemplateMetadata.from_json((FOLDER / "metadata.json").read_text())
    (until,) = (parameter for parameter in metadata.parameters if parameter.name == "until")

    parse_time(moment)

    assert all(re.search(regex, moment) for regex in until.regexes)


def test_the_scheduled_launch_gives_the_parameters_of_the_template() -> None:
    metadata = TemplateMetadata.from_json((FOLDER / "metadata.json").read_text())
    (content,) = json.loads((FOLDER / "launch.json").read_text()).values()

    launch = LaunchFlexTemplateParameter.from_json(json.dumps(content))

    asked = {parameter.name: parameter for parameter in metadata.parameters}
    assert set(launch.parameters) <= set(asked)
    assert {name for name, parameter in asked.items() if not parameter.is_optional} <= set(launch.parameters)
    for name, value in launch.parameters.items():
        assert all(re.search(regex, value) for regex in asked[name].regexes)
    # A driver is one process: two workers would do its work twice.
    assert (launch.environment.num_workers, launch.environment.max_workers) == (1, 1)


def manifest() -> dict[str, Any]:
    content: dict[str, Any] = yaml.safe_load((FOLDER / "job.yaml").read_text())
    return content


def test_the_drivers_arguments_are_understood() -> None:
    """Beam also checks flags: a remote runner silently skips an unknown flag."""
    (container,) = manifest()["spec"]["template"]["spec"]["template"]["spec"]["containers"]

    arguments, flags = parser_of().parse_known_args(container["args"])

    assert container["command"] == ["slackwater"]
    assert (arguments.command, arguments.spec[:5]) == ("run", "gs://")
    known = options_of(flags).get_all_options()
    given = {flag.partition("=")[0].removeprefix("--").removeprefix("no_") for flag in flags}
    assert given <= set(known)
    assert known["use_public_ips"] is False


def test_the_driver_starts_once_and_has_a_timeout_above_the_default_of_ten_minutes() -> None:
    task = manifest()["spec"]["template"]["spec"]

    assert (manifest()["apiVersion"], manifest()["kind"]) == ("run.googleapis.com/v1", "Job")
    assert task["taskCount"] == 1
    assert task["template"]["spec"]["maxRetries"] == 0
    assert 600 < task["template"]["spec"]["timeoutSeconds"] <= 7 * 24 * 3600


def test_the_build_file_is_valid_for_cloud_build() -> None:
    assert is_valid(FOLDER / "image.yaml", "vendor.cloudbuild")


def test_files_name_the_built_images_and_the_image_has_beams_version() -> None:
    build = yaml.safe_load((FOLDER / "image.yaml").read_text())
    built = [image.replace("$_REPOSITORY", build["substitutions"]["_REPOSITORY"]) for image in build["images"]]
    own, dataflow = built
    (container,) = manifest()["spec"]["template"]["spec"]["template"]["spec"]["containers"]
    launch = json.loads((FOLDER / "launch.json").read_text())["launchParameter"]

    assert [image.rpartition("/")[2] for image in built] == [
        f"{name}:{version('slackwater')}" for name in ("slackwater", "slackwater-dataflow")
    ]
    assert container["image"] == own
    assert {f"--sdk_container_image={dataflow}", "--sdk_location=container"} <= {*container["args"]}
    assert launch["environment"]["sdkContainerImage"] == dataflow
    for step, image, target in zip(build["steps"], build["images"], ([], ["--target=dataflow"]), strict=True):
        assert f"--tag={image}" in step["args"]
        assert [argument for argument in step["args"] if "--target" in argument] == target
    assert f"apache/beam_python3.11_sdk:{version('apache-beam')} " in (ROOT / "templates/image/Dockerfile").read_text()
    assert f"apache-beam=={version('apache-beam')} " in (ROOT / "requirements.txt").read_text()
