"""A real Flink cluster on this machine, and releases on it.

    python -m templates.flink.local                       run until interrupted, and print the flags of a run on it
    python -m templates.flink.local run SPEC [FLAG ...]   start, run `slackwater run SPEC` on it, stop

A job manager, a task manager with two slots, Beam's job server and a pool that starts Python workers run as separate
processes. Flink and the workers listen on loopback; Beam's job server always listens on all networks. Paths in the spec
must be valid for all of them; here relative paths start in the current folder. Logs hold exact facts, so they are in a
folder that only its owner can read.
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

from templates.flink.classes import SECONDS, Archives
from templates.flink.distribution import FlinkError, flink_home, job_server_jars

PATIENCE = 60.0
"""Seconds until a process must answer; it takes about five on an idle machine."""

SLOTS = 2
MEMORY = {"jobmanager": "1g", "job server": "512m"}
TASK_MEMORY = {
    "taskmanager.memory.process.size": "3g",
    # Beam sends a stage's input to its Python worker without waiting, so many rows of a slot are in buffers at once,
    # packed: ten million mutations need more than the default of 128 MB.
    "taskmanager.memory.task.off-heap.size": "768m",
    "taskmanager.memory.managed.fraction": "0.25",
}

OPTIONS = {"jobmanager": "FLINK_ENV_JAVA_OPTS_JM", "taskmanager": "FLINK_ENV_JAVA_OPTS_TM"}
"""Variables with which Flink's scripts add options of Java to one kind of process."""

QUICK_START = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""Options for short-lived processes, which would otherwise spend most of their time on compilation."""

RESTARTS = {
    "restart-strategy.type": "fixed-delay",
    "restart-strategy.fixed-delay.attempts": "3",
    # Longer than workers are kept for the next stage: a dead worker is kept too, and would be used again.
    "restart-strategy.fixed-delay.delay": "10 s",
    "heartbeat.interval": "2000",  # a killed task manager is noticed after two of these
}


@dataclass(slots=True)
class Cluster:
    """A running cluster.

    Attributes:
        folder: of logs, and of files that Flink and Beam keep while it runs.
        rest: port of Flink's REST interface.
        rpc: port of the job manager.
        jobs: port of Beam's job server.
        workers: port of the pool of Python workers.
        archives: of classes of Java's processes.
        processes: by name: `jobmanager`, `taskmanager`, `jobs` and `workers`.
    """

    folder: Path
    rest: int
    rpc: int
    jobs: int
    workers: int
    archives: Archives
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
            "--environment_cache_millis=5000",  # otherwise each stage starts new ones
            "--experiments=disable_logging_submission_environment",  # omits the list of installed packages
        ]

    def start(self, name: str, *command: str, environment: dict[str, str] | None = None) -> None:
        """Start a process with a separate log and process group, so that its child processes end with it.

        Args:
            name: of the process and its log.
            *command: to run.
            environment: additional variables.
        """
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
        """Start one of Flink's two kinds of processes by its script.

        Args:
            name: of the process and its log.
            script: in Flink's `bin`.
            **settings: of Flink.
        """
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
            # One copy of Beam for all jobs, from the class path below: with a copy for each job, Flink's default, a job
            # ends its workers after each stage despite `environment_cache_millis`.
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
                "HADOOP_CLASSPATH": _class_path(job_server_jars()),  # Flink adds these jars to its own
                OPTIONS[name]: " ".join(self.archives.options(name, f"{home}:{job_server_jars()}")),
                "JAVA_TOOL_OPTIONS": QUICK_START,  # also for the virtual machines with which scripts compute memory
            },
        )

    def start_task_manager(self) -> None:
        """Start the task manager, or another one after it has ended."""
        self.start_flink("taskmanager", "taskmanager.sh", **TASK_MEMORY)

    def wait_for(self, port: int, name: str) -> None:
        """Wait until a process listens on its port.

        Args:
            port: of the process.
            name: of the process.

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
        for name, process in self.processes.items():
            with suppress(subprocess.TimeoutExpired):
                process.wait(SECONDS if name in self.archives.missing else 10)
                self.archives.keep(name)
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


@contextmanager
def cluster(folder: Path) -> Iterator[Cluster]:
    """Run a cluster for as long as the `with` block runs.

    Args:
        folder: for logs; an existing folder is removed first.

    Raises:
        FlinkError: a part of it cannot be fetched, or does not start.
    """
    flink_home(), job_server_jars()  # fetches them before any process starts
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True, mode=0o700)
    rest, rpc, jobs, workers = free_ports(4)
    started = Cluster(folder, rest, rpc, jobs, workers, Archives(folder))
    try:
        started.start_flink("jobmanager", "jobmanager.sh", **{"jobmanager.memory.process.size": MEMORY["jobmanager"]})
        started.start_task_manager()
        class_path = _class_path(_unsent())
        started.start(
            "jobs",
            "java",
            f"-Xmx{MEMORY['job server']}",
            *QUICK_START.split(),
            *started.archives.options("jobs", class_path),
            "--add-opens=java.base/java.util=ALL-UNNAMED",
            "--add-opens=java.base/java.lang=ALL-UNNAMED",
            "-cp",
            class_path,
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


def _unsent() -> Path:
    """Link the job server's jars in a folder from which it sends none along with a job.

    Flink has all of them, and would receive 150 MB with each job. Beam has no option for that, but leaves out jars in
    Gradle's folder. All clusters use the same links, and so the same archive of classes.
    """
    links = job_server_jars() / "gradle/wrapper"
    links.mkdir(parents=True, exist_ok=True)
    for jar in job_server_jars().glob("*.jar"):
        try:
            os.link(jar, links / jar.name)
        except FileExistsError:
            continue
        except OSError:  # a file system without hard links
            shutil.copyfile(jar, links / jar.name)
    return links


def free_ports(number: int) -> list[int]:
    """Return ports on which no process listens now."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(number)]
    ports = [int(one.getsockname()[1]) for one in sockets]
    for one in sockets:
        one.close()
    return ports


def main(arguments: Sequence[str]) -> int:
    """Return the exit code: that of `slackwater run`, or 4 if the cluster does not start."""
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
