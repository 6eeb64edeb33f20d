"""Images have exact versions, and containers have no root user and no unnecessary rights."""

import re
from typing import Any

import pytest

from tests.templates.test_flink_deployment import ROOT, of_kind, services

DOCKERFILE = ROOT / "templates/image/Dockerfile"
USER = 10001
"""User of our image."""

FLINK = "flink-main-container"
"""The operator's name for Flink's container, whose start script writes into the image."""


def pods() -> dict[str, dict[str, Any]]:
    """Return the specs of all pods."""
    (cluster,), (server,), (cron,) = (of_kind(kind) for kind in ("FlinkDeployment", "Deployment", "CronJob"))
    return {
        "job manager": cluster["spec"]["jobManager"]["podTemplate"]["spec"],
        "task manager": cluster["spec"]["taskManager"]["podTemplate"]["spec"],
        "job server": server["spec"]["template"]["spec"],
        "driver": cron["spec"]["jobTemplate"]["spec"]["template"]["spec"],
    }


def test_the_files_that_the_image_copies_exist_and_are_not_ignored() -> None:
    lines = DOCKERFILE.read_text().splitlines()
    let_in = DOCKERFILE.with_name("Dockerfile.dockerignore").read_text()
    copied = [line.split()[1:-1] for line in lines if line.startswith("COPY ") and "--from" not in line]

    assert copied
    for path in (path for paths in copied for path in paths):
        assert (ROOT / path).exists()
        assert f"!{path}\n" in let_in


def test_the_image_runs_as_an_unprivileged_user_by_default() -> None:
    """Only Dataflow's image uses root; the last stage is the default target."""
    _, *stages = re.split(r"^FROM ", DOCKERFILE.read_text(), flags=re.MULTILINE)
    users = {stage.split("\n")[0]: re.findall(r"^USER (.*)$", stage, re.MULTILINE) for stage in stages}

    base, dataflow, own = users
    assert (dataflow, own) == ("base AS dataflow", "base")
    assert users == {base: [], dataflow: [], own: [f"{USER}:{USER}"]}
    assert f"useradd --uid {USER} " in DOCKERFILE.read_text()


def images() -> set[str]:
    """Return all images that the templates take from a registry."""
    found = set(re.findall(r"(?:^FROM |--from=)(\S*[:@]\S*)", DOCKERFILE.read_text(), re.MULTILINE))
    for path in (ROOT / "templates").rglob("*.yaml"):
        found |= set(re.findall(r"^[ -]*(?:image|name): (\S+[:/]\S+)$", path.read_text(), re.MULTILINE))
    return found


def test_every_image_has_an_exact_version() -> None:
    assert len(images()) == 8
    assert {image for image in images() if not re.search(r":v?\d[\w.-]*(@sha256:[0-9a-f]{64})?$", image)} == set()


@pytest.mark.parametrize("name", pods())
def test_no_pod_runs_as_root_or_keeps_unnecessary_rights(name: str) -> None:
    pod = pods()[name]
    rules = pod["securityContext"]
    mounted = {volume["name"] for volume in pod.get("volumes", ()) if "emptyDir" in volume}

    assert (rules["runAsNonRoot"], rules["seccompProfile"]) == (True, {"type": "RuntimeDefault"})
    for container in pod["containers"]:
        own = container["securityContext"]
        assert (own["allowPrivilegeEscalation"], own["capabilities"]) == (False, {"drop": ["ALL"]})
        assert own["readOnlyRootFilesystem"] == (container["name"] != FLINK)
        paths = {mount["mountPath"]: mount["name"] for mount in container.get("volumeMounts", ())}
        if own["readOnlyRootFilesystem"]:
            assert paths["/tmp"] in mounted
        if container.get("image", "").startswith("slackwater:"):
            user = {**rules, **own}
            assert (user["runAsUser"], user["runAsGroup"], user["fsGroup"]) == (USER, USER, USER)
        assert ("/data" in paths) == container.get("image", "").startswith("slackwater:")


@pytest.mark.parametrize("name", services())
def test_no_service_of_the_compose_file_runs_as_root_or_keeps_unnecessary_rights(name: str) -> None:
    service = services()[name]

    assert re.fullmatch(rf"9999:9999|{USER}:{USER}|\$\{{SLACKWATER_USER:-{USER}:{USER}\}}", service["user"])
    assert (service["cap_drop"], service["security_opt"]) == (["ALL"], ["no-new-privileges:true"])
    assert (service.get("read_only"), service.get("tmpfs")) == (
        (None, None) if service["image"].startswith("flink:") else (True, ["/tmp"])
    )


def test_settings_of_flink_hold_no_comment() -> None:
    """The start script of its image takes the rest of a line after the colon as the value, without spaces."""
    settings = [services()[name]["environment"]["FLINK_PROPERTIES"] for name in ("jobmanager", "taskmanager")]

    assert all(re.fullmatch(r"([\w.-]+: [\w .-]+\n?)+", text) for text in settings)
