"""Every command reports unreachable gs:// paths in one line within seconds."""

import gc
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import apache_beam.internal.gcp.auth
import google.auth.compute_engine._metadata
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from pipelines.sinks.bigquery import EMULATOR
from tests.e2e.specs import CommandLine, Said, changelog, write, write_spec
from transforms.common import cloud

INPUT = ("data/*.parquet", "gs://there/data/*.parquet")
OUTPUT = (("public: public", "public: gs://there/public"), ("private: private", "private: gs://there/private"))
TABLES = ("private: private", "private: private\n  bigquery: {estimates: house-1.wards.all}")
TRUTH = ("--truth", "gs://there/truth.parquet")
KAFKA = ("  path: data/*.parquet", "  path: kafka://127.0.0.1:1/stays\n  kafka: gs://there/kafka.properties")

COMMANDS = {
    "plan, its spec": ("plan", "gs://there/spec.yaml"),
    "run, its changelog": ("run", "input.yaml"),
    "run, its folders": ("run", "output.yaml"),
    "run, another release": ("run", "output.yaml", "--new-release", "other"),
    "evaluate, its changelog": ("evaluate", "input.yaml"),
    "evaluate, the truth": ("evaluate", "local.yaml", *TRUTH),
    "evaluate, settings of Kafka": ("evaluate", "kafka.yaml"),
    "run, its tables": ("run", "tables.yaml"),
    "ledger": ("ledger", "output.yaml"),
    "metrics": ("metrics", "output.yaml"),
    "changelog, a glob": ("changelog", "gs://there/*.csv", "--suggest", "--entry", "stay", "--time", "at"),
    "changelog, a spec": ("changelog", "input.yaml", "--suggest"),
    "changelog, the copy": ("changelog", "local.yaml", "-o", "gs://there/copy"),
    "show, a public folder": ("show", "gs://there/public"),
    "report, its public folder": ("report", "output.yaml"),
    "local estimate, its design": ("local", "estimate", "gs://there/design.json", "reports.csv"),
    "local estimate, its reports": ("local", "estimate", "design.json", "gs://there/*.csv"),
    "local estimate, its numbers": ("local", "estimate", "design.json", "reports.csv", "-o", "gs://there/numbers.csv"),
    "local report, its design": ("local", "report", "gs://there/design.json", "numbers.csv"),
}


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Set up a machine without credentials, not in Google's cloud; looking that up takes some seconds."""
    for name in ("GOOGLE_APPLICATION_CREDENTIALS", "STORAGE_EMULATOR_HOST", EMULATOR):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("CLOUDSDK_CONFIG", str(tmp_path / "gcloud"))
    monkeypatch.setattr(google.auth.compute_engine._metadata, "_NO_GCE_CHECK", True)


@pytest.fixture
def slackwater(tmp_path: Path, capsys: pytest.CaptureFixture[str], machine: None) -> CommandLine:
    write_spec(tmp_path, name="local.yaml")
    write_spec(tmp_path, INPUT, name="input.yaml")
    write_spec(tmp_path, *OUTPUT, name="output.yaml")
    write_spec(tmp_path, TABLES, name="tables.yaml")
    write_spec(tmp_path, KAFKA, ("format: parquet", "format: jsonl"), ("  before: before_\n", ""), name="kafka.yaml")
    write(tmp_path / "data/part.parquet", changelog(entries=3))
    return CommandLine(tmp_path, capsys)


@contextmanager
def serving(answer: Callable[[BaseHTTPRequestHandler], tuple[int, dict[str, object]]]) -> Iterator[str]:
    """A server on loopback that gives one answer to all; its address."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            code, document = answer(self)
            body = json.dumps(document).encode()
            self.send_response(code)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_POST(self) -> None:
            self.do_GET()

        def log_message(self, *_: object) -> None:
            """Log nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def refused(code: int) -> tuple[int, dict[str, object]]:
    return code, {"error": {"code": code, "message": "no"}}


def one_line(said: Said) -> str:
    assert len(said.lines) == 1, said.err
    assert said.out == ""
    return said.lines[0]


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_without_credentials_every_command_reports_it_within_seconds(
    slackwater: CommandLine, command: tuple[str, ...]
) -> None:
    began = time.monotonic()

    said = slackwater(*command)

    assert time.monotonic() - began < 30  # Google's own patience is minutes
    assert said.code == 1, said.err
    told = one_line(said)
    for word in ("GOOGLE_APPLICATION_CREDENTIALS (not set)", "gcloud's application default file", "metadata server"):
        assert word in told


def test_missing_credentials_that_are_named_are_reported(
    slackwater: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", "/none/key.json")

    said = slackwater("ledger", "output.yaml")

    assert said.code == 1
    assert "GOOGLE_APPLICATION_CREDENTIALS (what it names cannot be used)" in one_line(said)


@pytest.mark.slow
def test_a_metadata_server_that_never_answers_is_not_waited_for(
    slackwater: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(google.auth.compute_engine._metadata, "_NO_GCE_CHECK", False)
    monkeypatch.setattr(cloud, "PATIENCE", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        monkeypatch.setenv("GCE_METADATA_IP", f"127.0.0.1:{silent.getsockname()[1]}")
        said = slackwater("ledger", "output.yaml")

    assert said.code == 1
    assert "metadata server" in one_line(said)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("answer", "code", "words"),
    [
        (401, 1, "Google does not take these credentials"),
        (403, 1, "give the account the role"),
        (404, 2, "there is no bucket 'there'"),
        (503, 4, "no answer from Google within"),
    ],
)
def test_a_bucket_that_refuses_is_reported_with_a_remedy(
    slackwater: CommandLine, monkeypatch: pytest.MonkeyPatch, answer: int, code: int, words: str
) -> None:
    monkeypatch.setattr(cloud, "PATIENCE", 2.0)
    with serving(lambda _: refused(answer)) as address:
        monkeypatch.setenv("STORAGE_EMULATOR_HOST", address)
        said = slackwater("ledger", "output.yaml")

    told = one_line(said)
    assert said.code == code
    assert words in told
    assert "gs://there/private" in told


@pytest.mark.slow
@pytest.mark.parametrize(
    ("answer", "code", "words"),
    [
        (403, 1, "not allowed with the credentials at hand (403); give the account the roles BigQuery Data Editor"),
        (400, 1, "BigQuery refuses this"),
        (503, 4, "no answer from Google within"),
    ],
)
def test_a_refused_table_is_reported_with_a_remedy(
    slackwater: CommandLine, monkeypatch: pytest.MonkeyPatch, answer: int, code: int, words: str
) -> None:
    monkeypatch.setattr(cloud, "PATIENCE", 1.0)
    with serving(lambda _: refused(answer)) as address:
        monkeypatch.setenv(EMULATOR, address)
        said = slackwater("run", "tables.yaml")

    told = one_line(said)
    assert said.code == code
    assert words in told
    assert told.startswith("slackwater: house-1.wards.all: ")


@pytest.mark.slow
def test_a_read_only_table_is_refused_before_anything_is_sampled(
    slackwater: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    columns = {"release": "STRING", "epoch": "INTEGER", "query": "STRING", "kind": "STRING", "ward": "STRING"}
    columns |= dict.fromkeys(("window_start", "window_end"), "TIMESTAMP")
    columns |= dict.fromkeys(("value", "stddev", "ci_low", "ci_high"), "FLOAT")
    names = dict(zip(("projectId", "datasetId", "tableId"), ("house-1", "wards", "all"), strict=True))
    fields = [{"name": name, "type": kind, "mode": "NULLABLE"} for name, kind in columns.items()]
    table = {"tableReference": names, "datasetReference": names, "schema": {"fields": fields}}

    with serving(lambda request: (200, {} if request.command == "POST" else table)) as address:
        monkeypatch.setenv(EMULATOR, address)
        said = slackwater("run", "tables.yaml")

    assert said.code == 1
    assert "house-1.wards.all: this account may not write into it; give the account the roles" in one_line(said)
    assert not (slackwater.folder / "private/commits").exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "code", "words"),
    [
        (("run", "output.yaml"), 1, "bucket 'there' does not allow this"),
        (("changelog", "local.yaml", "-o", "gs://there/copy"), 4, "no changelog was written"),
    ],
)
def test_a_read_only_bucket_is_reported_with_a_remedy(
    slackwater: CommandLine, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...], code: int, words: str
) -> None:
    uploads = []

    def answer(request: BaseHTTPRequestHandler) -> tuple[int, dict[str, object]]:
        if request.command == "POST":
            uploads.append(request.path)
            return refused(403)
        return refused(404) if "/o/" in request.path else (200, {"kind": "storage#objects"})

    # Else Beam looks for credentials of this machine first, for many seconds.
    monkeypatch.setattr(apache_beam.internal.gcp.auth._Credentials, "_credentials_init", True)
    with serving(answer) as address:
        monkeypatch.setenv("STORAGE_EMULATOR_HOST", address)
        said = slackwater(*command)
        refusals = len(uploads)
        gc.collect()

    told = one_line(said)
    assert said.code == code
    assert words in told
    assert 0 < refusals == len(uploads), "a file that failed is uploaded again when Python forgets it"


@pytest.mark.slow
def test_a_revoked_key_is_reported(slackwater: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048).private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    with serving(lambda _: (400, {"error": "invalid_grant"})) as address:
        account = {"type": "service_account", "client_email": "job@house", "token_uri": address}
        (tmp_path / "key.json").write_text(json.dumps({**account, "private_key": key.decode(), "project_id": "house"}))
        monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path / "key.json"))
        said = slackwater("ledger", "output.yaml")

    assert said.code == 1
    assert "Google does not take these credentials (RefreshError)" in one_line(said)
