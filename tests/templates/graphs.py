"""The graph for Dataflow: built by the command line, staged on a server of gs://, and read back."""

import base64
import bz2
import json
import os
from collections.abc import Iterator
from contextlib import chdir, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import apache_beam.internal.gcp.auth
import pytest
from apache_beam.portability.api import beam_runner_api_pb2 as beam_protos
from gcp_storage_emulator.server import create_server
from google.cloud import storage

from pipelines import cli
from tests.e2e.specs import changelog, write, write_spec

REMOTE = (
    ("data/*.parquet", "gs://in/data/*.parquet"),
    ("public: public", "public: gs://out/public"),
    ("private: private", "private: gs://out/private"),
)
DATAFLOW = (
    "--runner=DataflowRunner",
    "--project=my-project",
    "--region=europe-west1",
    "--temp_location=gs://out/temp",
    "--sdk_container_image=europe-west1-docker.pkg.dev/my-project/slackwater/slackwater-dataflow:0.3.0",
    "--sdk_location=container",
)


@contextmanager
def gcs() -> Iterator[storage.Client]:
    """Yield a server of gs:// that serves Beam, with the buckets `in` and `out`."""
    server = create_server("127.0.0.1", 0, in_memory=True)
    server.start()
    with pytest.MonkeyPatch.context() as patch:
        # Otherwise Beam first looks for credentials of this machine, for many seconds.
        patch.setattr(apache_beam.internal.gcp.auth._Credentials, "_credentials_init", True)
        patch.setenv("STORAGE_EMULATOR_HOST", f"http://127.0.0.1:{server._api._httpd.server_address[1]}")
        try:
            client = storage.Client()
            for bucket in ("in", "out"):
                client.create_bucket(bucket)
            yield client
        finally:
            server.stop()


def upload(client: storage.Client, folder: Path, *, files: int, entries: int = 40) -> None:
    """Write the spec and its changelog into the bucket `in`."""
    rows = changelog(entries)
    for part in range(files):
        path = write(folder / f"part-{part}.parquet", rows[part::files])
        client.bucket("in").blob(f"data/{path.name}").upload_from_filename(str(path))
    client.bucket("in").blob("spec.yaml").upload_from_filename(str(write_spec(folder, *REMOTE)))


def slackwater(folder: Path, *arguments: str) -> int:
    """Run the command line in a separate folder, and return its exit code."""
    folder.mkdir(exist_ok=True)
    with chdir(folder):
        return cli.main(arguments)


def names(client: storage.Client, prefix: str) -> list[str]:
    return [blob.name for blob in client.list_blobs("out", prefix=prefix)]


@dataclass(frozen=True, slots=True)
class Graph:
    """A job as Dataflow's service reads it: its JSON, and the pipeline that the JSON names."""

    job: str
    pipeline: beam_protos.Pipeline

    @property
    def steps(self) -> list[str]:
        """Return names of all steps except the root, which has no name."""
        components = self.pipeline.components.transforms
        return sorted(
            step.unique_name for key, step in components.items() if key not in self.pipeline.root_transform_ids
        )

    def coder_of(self) -> dict[str, str]:
        """Return the coder of each collection by step and output."""
        collections = self.pipeline.components.pcollections
        return {
            f"{step.unique_name}.{tag}": collections[collection].coder_id
            for step in self.pipeline.components.transforms.values()
            if not step.subtransforms
            for tag, collection in step.outputs.items()
        }

    def loose(self, coder: str) -> bool:
        """Return whether a coder accepts any value by pickling it; times and parts of a node's key are exceptions."""
        found = self.pipeline.components.coders[coder]
        parts = list(found.component_coder_ids)
        urns = [self.pipeline.components.coders[part].spec.urn for part in parts]
        if found.spec.urn == "beam:coder:nullable:v1":  # of a Reshuffle: the time
            return False
        if urns[:2] == ["beam:coder:string_utf8:v1", "beam:coder:varint:v1"] and len(parts) == 4:  # NodeKey
            return False
        return b"FastPrimitivesCoder" in found.spec.payload or any(self.loose(part) for part in parts)

    def shown(self) -> str:
        """Return the texts that Dataflow's pages and logs show."""
        data = [
            beam_protos.LabelledPayload.FromString(item.payload)
            for step in self.pipeline.components.transforms.values()
            for item in step.display_data
        ]
        return "\n".join([self.job, *self.steps, *(str(item) for item in data)])

    def content(self) -> bytes:
        """Return all bytes of the job, with packed parts unpacked."""
        unpacked = [self.job.encode(), self.pipeline.SerializeToString()]
        for step in self.pipeline.components.transforms.values():
            if step.spec.urn == "beam:transform:pardo:v1":
                packed = beam_protos.ParDoPayload.FromString(step.spec.payload).do_fn.payload
                unpacked.append(bz2.decompress(base64.b64decode(packed)))
        return b"\n".join(unpacked)


def graph(client: storage.Client, job: str) -> Graph:
    """Read back the job that `--template_location` wrote."""
    text = client.bucket("out").blob(job).download_as_text()
    options: dict[str, Any] = json.loads(text)["environment"]["sdkPipelineOptions"]
    shown = {item["key"]: item["value"] for item in options["display_data"]}
    staged = f"{shown['staging_location']}/pipeline.pb".removeprefix("gs://out/")
    content = client.bucket("out").blob(staged).download_as_bytes()
    return Graph(text, beam_protos.Pipeline.FromString(content))


def built(folder: Path, *flags: str, files: int) -> Graph:
    """Return the graph of a release's first run."""
    with gcs() as client:
        upload(client, folder, files=files)
        job = f"templates/{os.getpid()}.json"
        code = slackwater(
            folder / "run", "run", "gs://in/spec.yaml", *DATAFLOW, f"--template_location=gs://out/{job}", *flags
        )
        assert code == 0
        assert not names(client, "public/")
        assert not names(client, "private/commits/")
        return graph(client, job)
