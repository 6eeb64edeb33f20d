"""Our schemas of the Kubernetes kinds used here, and checks of documents against any schema."""

from pathlib import Path
from typing import Any

from check_jsonschema.cli import main as check
from jsonschema import Draft202012Validator

NAME = {
    "type": "object",
    "properties": {"name": {"type": "string"}},
    "required": ["name"],
    "additionalProperties": False,
}
LABELS = {"type": "object", "additionalProperties": {"type": "string"}, "minProperties": 1}
SELECTOR = {"type": "object", "properties": {"matchLabels": LABELS}, "additionalProperties": False}
PORTS = {"type": "array", "items": {"type": "object", "required": ["port"], "additionalProperties": False}}

OTHERS: dict[str, tuple[str, dict[str, Any]]] = {
    "CronJob": (
        "batch/v1",
        {
            "schedule": {"type": "string", "pattern": r"^(\S+ ){4}\S+$"},
            "timeZone": {"type": "string"},
            "concurrencyPolicy": {"enum": ["Allow", "Forbid", "Replace"]},
            "startingDeadlineSeconds": {"type": "integer"},
            "jobTemplate": {
                "properties": {
                    "spec": {
                        "properties": {"backoffLimit": {"type": "integer"}, "template": {"type": "object"}},
                        "required": ["template"],
                        "additionalProperties": False,
                    }
                },
                "required": ["spec"],
                "additionalProperties": False,
            },
        },
    ),
    "Deployment": (
        "apps/v1",
        {
            "replicas": {"type": "integer"},
            "strategy": {
                "properties": {"type": {"enum": ["Recreate", "RollingUpdate"]}},
                "additionalProperties": False,
            },
            "selector": SELECTOR,
            "template": {"type": "object"},
        },
    ),
    "Service": (
        "v1",
        {
            "selector": LABELS,
            "ports": {
                **PORTS,
                "items": {**PORTS["items"], "properties": {"name": {"type": "string"}, "port": {"type": "integer"}}},
            },
        },
    ),
    "NetworkPolicy": (
        "networking.k8s.io/v1",
        {
            "podSelector": SELECTOR,
            "policyTypes": {"type": "array", "items": {"enum": ["Ingress", "Egress"]}},
            "ingress": {
                "type": "array",
                "items": {
                    "properties": {
                        "from": {"type": "array", "items": {"properties": {"podSelector": SELECTOR}}},
                        "ports": {**PORTS, "items": {**PORTS["items"], "properties": {"port": {"type": "integer"}}}},
                    },
                    "additionalProperties": False,
                },
            },
        },
    ),
    "PersistentVolumeClaim": (
        "v1",
        {
            "accessModes": {"type": "array", "items": {"enum": ["ReadWriteOnce", "ReadWriteMany"]}},
            "resources": {"properties": {"requests": {"required": ["storage"]}}, "additionalProperties": False},
        },
    ),
}
"""Kinds of Kubernetes: version and used fields, from its API reference; pods are checked separately."""


def closed(schema: Any) -> Any:
    """Return the schema changed to refuse unknown fields, which Kubernetes ignores."""
    if isinstance(schema, list):
        return [closed(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    made = {key: closed(value) for key, value in schema.items()}
    named = isinstance(made.get("properties"), dict) and made.get("type") == "object"
    if named and not made.get("x-kubernetes-preserve-unknown-fields"):
        made.setdefault("additionalProperties", False)
    return made


def is_valid(path: Path, published: str) -> bool:
    """Return whether a file follows a schema of `check_jsonschema`, which prints errors."""
    return check([f"--builtin-schema={published}", str(path)], standalone_mode=False) == 0


def errors(schema: dict[str, Any], document: Any) -> list[str]:
    return [f"{error.json_path}: {error.message[:200]}" for error in Draft202012Validator(schema).iter_errors(document)]
