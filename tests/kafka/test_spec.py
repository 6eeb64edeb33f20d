"""Validation of topics in a spec, without a broker."""

from pathlib import Path

import pytest

from tests.pipelines.spec_text import GOOD, changed, loaded, problems

TOPIC = changed("data/*.parquet", "kafka://k:9092/stays", changed("format: parquet", "format: jsonl"))


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (changed("format: jsonl", "format: parquet", TOPIC), "3: changelog.format: topics hold one of jsonl, debezium"),
        (changed("/stays", "/stays/*", TOPIC), "4: changelog.path: expected kafka://HOST:PORT/TOPIC, the brokers with"),
        (
            changed("kafka://k:9092/stays", "[a.jsonl, kafka://k]", TOPIC),
            "4: changelog.path[1]: expected kafka://HOST:PORT/TOPIC",
        ),
        (
            changed("  time: at", "  time: at\n  kafka: k.properties"),
            "7: changelog.kafka: only for paths that begin with",
        ),
        (
            changed("  time: at", "  time: at\n  kafka: out/public/k.properties", TOPIC),
            "7: changelog.kafka: lies inside output.public; it holds secrets, move it",
        ),
    ],
)
def test_errors_in_a_topic_are_reported(tmp_path: Path, text: str, told: str):
    (line,) = problems(tmp_path, text)

    assert line.startswith(f"spec.yaml:{told}")


def test_a_password_in_the_path_is_refused_and_not_repeated(tmp_path: Path):
    (line,) = problems(tmp_path, changed("kafka://k", "kafka://reader:secret@k", TOPIC))

    assert line.startswith("spec.yaml:4: changelog.path: no user or password here")
    assert "secret" not in line


def test_the_settings_file_is_read_and_not_part_of_the_frozen_spec(tmp_path: Path):
    with_file = loaded(tmp_path, changed("  time: at", "  time: at\n  kafka: k.properties", TOPIC))
    without = loaded(tmp_path, TOPIC)

    assert with_file.changelog.source.kafka == "k.properties"
    assert with_file.sha256 == without.sha256 != loaded(tmp_path, GOOD).sha256
