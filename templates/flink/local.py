"""A real Flink cluster on this machine, and releases on it.

    python -m templates.flink.local                       stay up until interrupted; say which flags lead there
    python -m templates.flink.local run SPEC [FLAG ...]   start, `slackwater run SPEC` there, stop

A job manager, a task manager with two slots, Beam's job server and a pool that starts Python workers: each a process
of its own. Flink and the workers listen on loopback; Beam's job server cannot be kept from listening on all networks.
Paths in the spec must mean the same to all of them; here relative ones start in the current folder. Logs hold exact
facts, so they go into a folder that only its owner can read.
"""

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from templates.flink.distribution import FlinkError, flink_home, job_server_jars

PATIENCE = 60.0
"""Seconds for a process to answer; they take about five each when nothing else runs."""

SLOTS = 2
MEMORY = {"jobmanager": "1g", "job server": "512m"}
TASK_MEMORY = {
    "taskmanager.memory.process.size": "3g",
    # Beam hands a stage's input to its Python worker without waiting for it, so that much of a slot's rows is in
    # buffers at once, packed: ten million mutations need more than the 128 MB that there are otherwise.
    "taskmanager.memory.task.off-heap.size": "768m",
    "taskmanager.memory.managed.fraction": "0.25",
}

QUICK_START = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""A process that lives for minutes spends most of them on compiling itself well."""

RESTARTS = {
    "restart-strategy.type": "fixed-delay",
    "restart-strategy.fixed-delay.attempts": "3",
    # Longer than workers are kept for the next stage: one that died is kept as well, and would be asked again.
    "restart-strategy.fixed-delay.delay": "10 s",
    "heartbeat.interval": "2000",  # a task manager that was killed is missed after two of these
}


@dataclass(slots=True)
class Cluster:
    """A cluster that runs.

    Attributes:
        folder: of logs, and of files that Flink and Beam keep while it runs.
        processes: by name: `jobmanager`, `taskmanager`, `jobs` and `workers`.
    """

    folder: Path
    rest: int
    rpc: int
    jobs: int
    workers: int
    processes: dict[str, "subprocess.Popen[bytes]"] = field(default_factory=dict)

    @property
    def flags(self) -> list[str]:
        """Pipeline options that run a pipeline here."""
        return [
            "--runner=FlinkRunner",
            f"--job_endpoint=127.0.0.1:{self.jobs}",
            "--environment_type=EXTERNAL",
            f"--environment_config=127.0.0.1:{self.workers}",
            "--parallelism=2",
            "--sdk_worker_parallelism=2",  # workers of a task manager
            "--environment_cache_millis=5000",  # or else each stage starts new ones
            "--experiments=disable_logging_submission_environment",  # nobody needs the list of installed packages
        ]

    def start(self, name: str, *command: str, environment: dict[str, str] | None = None) -> None:
        """Start a process with a log of its own, and a group of its own, so that what it starts ends with it."""
        with (self.folder / f"{name}.log").open("ab") as log:
            self.processes[name] = subprocess.Popen(
                command,
                env=os.environ | (environment or {}),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def start_flink(self, name: str, script: str, **settings: str) -> None:
        """Start one of Flink's two kinds of processes by its own script."""
        home = flink_home()
        common = {
            "rest.address": "127.0.0.1",
            "rest.bind-address": "127.0.0.1",
            "rest.port": str(self.rest),
            "jobmanager.rpc.address": "127.0.0.1",
            "jobmanager.rpc.port": str(self.rpc),
            "jobmanager.bind-host": "127.0.0.1",
            "taskmanager.host": "127.0.0.1",
            "taskmanager.bind-host": "127.0.0.1",
            "taskmanager.numberOfTaskSlots": str(SLOTS),
            # One copy of Beam for all jobs, from the class path below: with a copy of its own, as Flink likes it, a job
            # ends its workers after each stage all the same.
            "classloader.resolve-order": "parent-first",
            "io.tmp.dirs": str(self.folder / "tmp"),
            "state.checkpoints.dir": f"file://{self.folder}/checkpoints",  # of streams; the job manager's heap is small
            **RESTARTS,
        }
        options = [part for key, value in (common | settings).items() for part in ("-D", f"{key}={value}")]
        self.start(
            name,
            str(home / "bin" / script),
            "start-foreground",
            *options,
            environment={
                "FLINK_HOME": str(home),
                "FLINK_CONF_DIR": str(home / "conf"),
                "FLINK_LOG_DIR": str(self.folder),
                "FLINK_PID_DIR": str(self.folder),
                "HADOOP_CLASSPATH": _class_path(job_server_jars()),  # which stands for any jars beside Flink's own
                "JAVA_TOOL_OPTIONS": QUICK_START,  # also for the virtual machines with which scripts compute memory
            },
        )

    def start_task_manager(self) -> None:
        """Start the task manager; also in place of one that is gone."""
        self.start_flink("taskmanager", "taskmanager.sh", **TASK_MEMORY)

    def wait_for(self, port: int, name: str) -> None:
        """
        Raises:
            FlinkError: the process ended, or does not answer.
        """
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            if self.processes[name].poll() is not None:
                raise FlinkError(f"{name} ended at once; see {self.folder / name}.log")
            with socket.socket() as one:
                if one.connect_ex(("127.0.0.1", port)) == 0:
                    return
            time.sleep(0.1)
        raise FlinkError(f"{name} does not answer within {PATIENCE:.0f} s; see {self.folder / name}.log")

    def stop(self) -> None:
        """End all processes and what they started."""
        for process in self.processes.values():
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)
        for process in self.processes.values():
            with suppress(subprocess.TimeoutExpired):
                process.wait(10)
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


@contextmanager
def cluster(folder: Path) -> Iterator[Cluster]:
    """A cluster for as long as the `with` block runs.

    Args:
        folder: for logs; made anew.

    Raises:
        FlinkError: a part of it cannot be had, or does not start.
    """
    flink_home(), job_server_jars()  # so that nothing runs while they are fetched
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True, mode=0o700)
    rest, rpc, jobs, workers = free_ports(4)
    started = Cluster(folder, rest, rpc, jobs, workers)
    try:
        started.start_flink("jobmanager", "jobmanager.sh", **{"jobmanager.memory.process.size": MEMORY["jobmanager"]})
        started.start_task_manager()
        started.start(
            "jobs",
            "java",
            f"-Xmx{MEMORY['job server']}",
            *QUICK_START.split(),
            "--add-opens=java.base/java.util=ALL-UNNAMED",
            "--add-opens=java.base/java.lang=ALL-UNNAMED",
            "-cp",
            _class_path(_unsent(folder)),
            "org.apache.beam.runners.flink.FlinkJobServerDriver",
            f"--flink-master=127.0.0.1:{started.rest}",
            "--job-host=127.0.0.1",
            f"--job-port={started.jobs}",
            "--artifact-port=0",
            "--expansion-port=-1",
            f"--artifacts-dir={folder / 'artifacts'}",
        )
        started.start("workers", sys.executable, "-m", "templates.flink.worker_pool", str(started.workers))
        for port, name in ((started.rest, "jobmanager"), (started.jobs, "jobs"), (started.workers, "workers")):
            started.wait_for(port, name)
        yield started
    finally:
        started.stop()


def _class_path(jars: Path) -> str:
    return ":".join(str(jar) for jar in sorted(jars.glob("*.jar")))


def _unsent(folder: Path) -> Path:
    """The job server's jars in a folder from which it sends none along with a job: Flink has them all, and would get
    150 MB each time. Beam has no option for that, but leaves out what it takes for Gradle's own."""
    links = folder / "gradle/wrapper"
    links.mkdir(parents=True)
    for jar in job_server_jars().glob("*.jar"):
        try:
            os.link(jar, links / jar.name)
        except OSError:  # another file system
            shutil.copyfile(jar, links / jar.name)
    return links


def free_ports(number: int) -> list[int]:
    """Ports that nobody listens on now."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(number)]
    ports = [int(one.getsockname()[1]) for one in sockets]
    for one in sockets:
        one.close()
    return ports


def main(arguments: Sequence[str]) -> int:
    """The exit code: that of `slackwater run`, or 4 if the cluster cannot be had."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(4))
    try:
        with cluster(Path("out/flink").resolve()) as started:
            print(
                f"flink: logs in {started.folder} (private), jobs at http://127.0.0.1:{started.rest}", file=sys.stderr
            )
            if arguments:
                return subprocess.call([sys.executable, "-m", "pipelines", *arguments, *started.flags])
            print(" ".join(started.flags), flush=True)
            signal.pause()
    except FlinkError as error:
        print(f"flink: {error}", file=sys.stderr)
        return 4
    except KeyboardInterrupt:
        return 0
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
