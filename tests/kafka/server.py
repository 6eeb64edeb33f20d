"""A temporary Kafka broker on loopback for tests, with operations on its topics.

Maven downloads the broker once, and its digest is checked. It is its own controller, and keeps nothing.
"""

import os
import signal
import socket
import subprocess
import tempfile
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic

from templates.flink.distribution import maven_jars
from templates.flink.local import QUICK_START, free_ports

HERE = Path(__file__).resolve().parent
SECONDS = 60
"""Time limit to start; on an idle machine the broker needs five."""

USER, PASSWORD = "reader", "p4ssw0rd-secret"
"""Credentials for the second listener."""

_SETTINGS = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{plain},SASL://127.0.0.1:{sasl},CONTROLLER://127.0.0.1:{controller}
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SASL:SASL_PLAINTEXT
sasl.enabled.mechanisms=PLAIN
listener.name.sasl.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required \
  user_{user}="{password}";
log.dirs={folder}/data
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=1
"""


@dataclass(frozen=True, slots=True)
class Broker:
    """A running broker: its addresses without and with a password, and a client with all rights."""

    address: str
    sasl: str
    admin: AdminClient

    def path(self, topic: str) -> str:
        return f"kafka://{self.address}/{topic}"

    def topic(self, *, partitions: int = 1, policy: str = "delete", name: str | None = None) -> str:
        """Create a topic, wait until the broker knows it, and return its name.

        Args:
            partitions: Number of partitions.
            policy: `cleanup.policy` of the topic.
            name: Name of the topic; None for a random name.
        """
        name = name or f"stays-{uuid.uuid4().hex[:8]}"
        new = NewTopic(name, partitions, 1, config={"cleanup.policy": policy})
        self.admin.create_topics([new])[name].result()
        deadline = time.monotonic() + SECONDS
        while name not in self.admin.list_topics(timeout=SECONDS).topics:  # the controller tells the broker later
            assert time.monotonic() < deadline
            time.sleep(0.05)
        return name

    def grow(self, topic: str, partitions: int) -> None:
        self.admin.create_partitions([NewPartitions(topic, partitions)])[topic].result()

    def remove(self, topic: str) -> None:
        self.admin.delete_topics([topic])[topic].result()

    def delete_before(self, topic: str, offset: int, partition: int = 0) -> None:
        """Delete the records of a partition before an offset, as retention does.

        Args:
            topic: Name of the topic.
            offset: First offset to keep.
            partition: Number of the partition.
        """
        records = self.admin.delete_records([TopicPartition(topic, partition, offset)])
        next(iter(records.values())).result()

    def produce(self, topic: str, values: Sequence[bytes | None], partition: int = 0) -> None:
        producer = Producer({"bootstrap.servers": self.address})
        _write(producer, topic, values, partition)

    @contextmanager
    def transaction(self, topic: str, values: Sequence[bytes | None], partition: int = 0) -> Iterator[Producer]:
        """Send records in a transaction, which the `with` block commits, aborts or leaves open.

        Args:
            topic: Name of the topic.
            values: Values of the records.
            partition: Number of the partition.
        """
        producer = Producer({"bootstrap.servers": self.address, "transactional.id": uuid.uuid4().hex, "log_level": 0})
        producer.init_transactions(SECONDS)
        producer.begin_transaction()
        _write(producer, topic, values, partition)
        yield producer


def _write(producer: Producer, topic: str, values: Sequence[bytes | None], partition: int) -> None:
    for value in values:
        producer.produce(topic, value=value, key=b"key", partition=partition)
    assert producer.flush(SECONDS) == 0


@contextmanager
def broker() -> Iterator[Broker]:
    """Run a broker during the `with` block."""
    jars = maven_jars("kafka", HERE / "broker.xml", HERE / "broker.sha256")
    java = ["java", "-Xmx384m", *QUICK_START.split(), "-cp", f"{jars}/*"]
    with tempfile.TemporaryDirectory(prefix="slackwater-kafka-", ignore_cleanup_errors=True) as folder:
        plain, sasl, controller = free_ports(3)
        settings, log = Path(folder, "server.properties"), Path(folder, "log")
        settings.write_text(
            _SETTINGS.format(plain=plain, sasl=sasl, controller=controller, folder=folder, user=USER, password=PASSWORD)
        )
        new = ["kafka.tools.StorageTool", "format", "--cluster-id", "MkU3OEVBNTcwNTJENDM2Qk", "--config", str(settings)]
        done = subprocess.run([*java, *new], capture_output=True, text=True, timeout=SECONDS, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        with log.open("wb") as told:
            process = subprocess.Popen(
                [*java, "kafka.Kafka", str(settings)], cwd=folder, stdout=told, stderr=told, start_new_session=True
            )
        try:
            for port in (plain, sasl):
                _wait(port, process, log)
            address = f"127.0.0.1:{plain}"
            yield Broker(address, f"127.0.0.1:{sasl}", AdminClient({"bootstrap.servers": address, "log_level": 0}))
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # a regular stop takes seconds, and nothing is kept
            process.wait(SECONDS)


def _wait(port: int, process: "subprocess.Popen[bytes]", log: Path) -> None:
    deadline = time.monotonic() + SECONDS
    while True:
        with socket.socket() as one:
            if one.connect_ex(("127.0.0.1", port)) == 0:
                return
        if process.poll() is not None or time.monotonic() > deadline:
            raise AssertionError(log.read_text(errors="replace")[-4000:])
        time.sleep(0.05)
