"""Manifests and compose file of a Flink cluster agree with published schemas, with each other and with the pins."""

import hashlib
import re
import subprocess
import zipfile
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
import yaml

from pipelines.commands import parser_of
from pipelines.epochs.flags import options_of
from tests.programs import require
from tests.templates.schemas import NAME, OTHERS, closed, errors, is_valid

ROOT = Path(__file__).resolve().parents[2]
COMPOSE = ROOT / "templates/flink/compose/compose.yaml"
KUBERNETES = sorted((ROOT / "templates/flink/kubernetes").glob("*.yaml"))

# The operator's own schema of a FlinkDeployment, which also holds that of a pod.
OPERATOR = "1.10.0"
JAR = f"flink-kubernetes-operator-api-{OPERATOR}.jar"
SHA256 = "b1f44814e17514fa8395c61b329a3ee9087123a5bda5b21fe1a495d5182c30b6"
DEFINITION = "META-INF/fabric8/flinkdeployments.flink.apache.org-v1.yml"


def manifests() -> list[dict[str, Any]]:
    return [document for path in KUBERNETES for document in yaml.safe_load_all(path.read_text())]


def of_kind(kind: str) -> list[dict[str, Any]]:
    return [document for document in manifests() if document["kind"] == kind]


WITH_SCHEMA = pytest.mark.xdist_group("operator")
"""Tests with the operator's schema run in one process, which reads the schema once."""


@pytest.fixture(scope="module")
def flink_deployment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Return the operator's schema, changed so that an unknown field is an error."""
    jar = Path.home() / f".m2/repository/org/apache/flink/flink-kubernetes-operator-api/{OPERATOR}/{JAR}"
    if not jar.exists():  # Maven's cache of earlier downloads
        jar = fetched(tmp_path_factory.mktemp("operator"))
    assert hashlib.sha256(jar.read_bytes()).hexdigest() == SHA256
    definition = yaml.load(zipfile.ZipFile(jar).read(DEFINITION), getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    (served,) = (one for one in definition["spec"]["versions"] if one["name"] == "v1beta1")
    schema: dict[str, Any] = closed(served["schema"]["openAPIV3Schema"])
    return schema


def fetched(folder: Path) -> Path:
    require("mvn")
    artifact = f"-Dartifact=org.apache.flink:flink-kubernetes-operator-api:{OPERATOR}"
    fetch = ["mvn", "--batch-mode", "--quiet", "dependency:copy", artifact, f"-DoutputDirectory={folder}"]
    subprocess.run(fetch, check=True, timeout=300, stdout=subprocess.DEVNULL)
    return folder / JAR


@WITH_SCHEMA
def test_the_cluster_is_valid_for_the_operator(flink_deployment: dict[str, Any]) -> None:
    (cluster,) = of_kind("FlinkDeployment")

    assert cluster["apiVersion"] == "flink.apache.org/v1beta1"
    assert errors(flink_deployment["properties"]["spec"], cluster["spec"]) == []
    # It catches an unknown name, a number instead of text, and an unknown version.
    for wrong in ({"taskmanager": {}}, {"flinkConfiguration": {"a": 4}}, {"flinkVersion": "v0_1"}):
        assert errors(flink_deployment["properties"]["spec"], cluster["spec"] | wrong)


@WITH_SCHEMA
def test_every_pod_is_valid(flink_deployment: dict[str, Any]) -> None:
    pod = flink_deployment["properties"]["spec"]["properties"]["podTemplate"]

    templates = [deployment["spec"]["template"] for deployment in of_kind("Deployment")]
    templates += [cron["spec"]["jobTemplate"]["spec"]["template"] for cron in of_kind("CronJob")]

    assert len(templates) == 2
    for template in templates:
        assert errors(pod, template) == []
        assert all(container["resources"]["limits"]["memory"] for container in template["spec"]["containers"])


def test_other_documents_have_the_fields_of_their_kind() -> None:
    found = [document for document in manifests() if document["kind"] != "FlinkDeployment"]

    assert {document["kind"] for document in found} == set(OTHERS)
    for document in found:
        api, fields = OTHERS[document["kind"]]
        schema = {"properties": fields, "additionalProperties": False, "type": "object"}
        assert set(document) == {"apiVersion", "kind", "metadata", "spec"}
        assert document["apiVersion"] == api
        assert errors(NAME, document["metadata"]) == []
        assert errors(schema, document["spec"]) == []


def test_the_compose_file_is_valid() -> None:
    assert is_valid(COMPOSE, "vendor.compose-spec")


def services() -> dict[str, Any]:
    content: dict[str, Any] = yaml.safe_load(COMPOSE.read_text())
    return dict(content["services"])


def cluster_and_workers() -> tuple[dict[str, Any], dict[str, Any]]:
    (cluster,) = of_kind("FlinkDeployment")
    _, workers = cluster["spec"]["taskManager"]["podTemplate"]["spec"]["containers"]
    return cluster["spec"], workers


def job_server() -> dict[str, Any]:
    (deployment,) = of_kind("Deployment")
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    return dict(container)


def driver() -> dict[str, Any]:
    (cron,) = of_kind("CronJob")
    (container,) = cron["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"]
    return dict(container)


def test_images_are_the_same_everywhere_and_have_the_pinned_versions() -> None:
    flink = re.search(r"^apache-flink==(\S+)", (ROOT / "templates/flink/requirements.txt").read_text(), re.MULTILINE)
    assert flink is not None
    minor = flink[1].rpartition(".")[0]
    images = {name: service["image"] for name, service in services().items()}
    cluster, workers = cluster_and_workers()
    ours = f"slackwater:{version('slackwater')}"
    beams = f"apache/beam_flink{minor}_job_server:{version('apache-beam')}"

    assert images == {
        "jobmanager": f"flink:{flink[1]}-java17",
        "taskmanager": f"flink:{flink[1]}-java17",
        "workers": ours,
        "jobserver": beams,
        "driver": ours,
    }
    assert (cluster["image"], workers["image"]) == (images["taskmanager"], ours)
    assert (job_server()["image"], driver()["image"]) == (beams, ours)
    assert cluster["flinkVersion"] == f"v{minor.replace('.', '_')}"


@pytest.mark.parametrize("where", ["compose", "kubernetes"])
def test_the_driver_finds_the_job_server_and_the_job_server_the_workers(where: str) -> None:
    if where == "compose":
        own, pool, server = (
            services()["driver"]["command"],
            services()["workers"]["entrypoint"],
            services()["jobserver"],
        )
        host, listens, reached = "jobserver", server["command"], {8099, 8098}
        flink = "jobmanager:8081"
        assert services()["workers"]["network_mode"] == "service:taskmanager"
        assert services()["driver"]["entrypoint"] == ["slackwater"]
    else:
        _, workers = cluster_and_workers()
        (service,) = of_kind("Service")
        own, pool, listens = driver()["args"], workers["command"], job_server()["args"]
        host, reached = service["metadata"]["name"], {port["port"] for port in service["spec"]["ports"]}
        flink = f"{of_kind('FlinkDeployment')[0]['metadata']['name']}-rest:8081"
        assert {port["containerPort"] for port in job_server()["ports"]} == reached
        assert driver()["command"] == ["slackwater"]

    arguments, flags = parser_of().parse_known_args(own)
    options = options_of(flags).get_all_options()

    assert arguments.spec.startswith("/data/")
    assert {flag.partition("=")[0].removeprefix("--") for flag in flags} <= set(options)
    assert options["job_endpoint"] == f"{host}:8099"
    assert options["artifact_endpoint"] == f"{host}:8098"
    assert reached == {8098, 8099}
    assert f"--flink-master={flink}" in listens
    assert "--artifact-port=8098" in listens
    # The pool listens on loopback, so each task manager's pod has one.
    assert (options["environment_type"], options["environment_config"]) == ("EXTERNAL", f"localhost:{pool[-1]}")
    assert pool[:-1] == ["python", "-m", "templates.flink.worker_pool"]
    assert (ROOT / "templates/flink/worker_pool.py").exists()


def test_all_readers_and_writers_of_the_release_see_the_same_folder() -> None:
    mounts = [service["volumes"] for name, service in services().items() if name in ("workers", "driver")]
    assert mounts == [["${SLACKWATER_DATA:-./data}:/data"]] * 2

    (claim,) = of_kind("PersistentVolumeClaim")
    cluster, workers = cluster_and_workers()
    (cron,) = of_kind("CronJob")
    pods = [cluster["taskManager"]["podTemplate"]["spec"], cron["spec"]["jobTemplate"]["spec"]["template"]["spec"]]
    data = {"name": "data", "persistentVolumeClaim": {"claimName": claim["metadata"]["name"]}}
    assert all(data in pod["volumes"] for pod in pods)
    for container in (workers, driver()):
        assert {"name": "data", "mountPath": "/data"} in container["volumeMounts"]
    assert claim["spec"]["accessModes"] == ["ReadWriteMany"]


def test_there_are_slots_for_the_requested_parallelism() -> None:
    cluster, _ = cluster_and_workers()
    slots = int(cluster["flinkConfiguration"]["taskmanager.numberOfTaskSlots"]) * cluster["taskManager"]["replicas"]
    properties = services()["taskmanager"]["environment"]["FLINK_PROPERTIES"]

    assert f"--parallelism={slots}" in driver()["args"]
    assert (
        f"--parallelism={yaml.safe_load(properties)['taskmanager.numberOfTaskSlots']}"
        in services()["driver"]["command"]
    )


def test_only_the_driver_may_send_jobs() -> None:
    (policy,) = of_kind("NetworkPolicy")
    (deployment,) = of_kind("Deployment")
    (cron,) = of_kind("CronJob")
    (rule,) = policy["spec"]["ingress"]

    assert policy["spec"]["podSelector"]["matchLabels"] == deployment["spec"]["template"]["metadata"]["labels"]
    labels = cron["spec"]["jobTemplate"]["spec"]["template"]["metadata"]["labels"]
    assert [source["podSelector"]["matchLabels"] for source in rule["from"]] == [labels]
    assert all(port.startswith("127.0.0.1:") for service in services().values() for port in service.get("ports", []))
