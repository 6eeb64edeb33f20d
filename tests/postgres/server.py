"""A temporary PostgreSQL server with logical decoding, from the machine's own installation.

It listens only on a socket in a separate folder, keeps nothing, and trusts every user who can reach the socket.
"""

import os
import pwd
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg

from tests.programs import require, where

SETTINGS = {
    "listen_addresses": "",
    "wal_level": "logical",
    "track_commit_timestamp": "on",  # times of commits, for the history that the tests keep
    "fsync": "off",
    "full_page_writes": "off",
    "autovacuum": "off",
    "shared_buffers": "16MB",
    "timezone": "UTC",
}
SECONDS = 60
"""Time limit to start, and to stop."""


@contextmanager
def server() -> Iterator[str]:
    """Run a server, and yield the connection string for clients."""
    require("postgres")
    folder = Path(str(where("postgres"))).resolve().parent
    # Only the user of pytest can read its folders, and the server refuses to run as root.
    with tempfile.TemporaryDirectory(prefix="slackwater-postgres-", ignore_cleanup_errors=True) as home:
        user = _unprivileged()
        if user is not None:
            os.chown(home, user.pw_uid, user.pw_gid)
        number, group = (None, None) if user is None else (user.pw_uid, user.pw_gid)
        groups: list[int] | None = None if user is None else []
        data, log = Path(home, "data"), Path(home, "log")
        initdb = [str(folder / "initdb"), f"--pgdata={data}", "--username=postgres", "--auth=trust", "--no-sync"]
        initdb += ["--encoding=UTF8", "--no-locale"]
        done = subprocess.run(
            initdb,
            cwd=home,
            user=number,
            group=group,
            extra_groups=groups,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        settings = {**SETTINGS, "unix_socket_directories": home}
        flags = [f"--{name}={value}" for name, value in settings.items()]
        with log.open("wb") as told:
            process = subprocess.Popen(
                [str(folder / "postgres"), "-D", str(data), *flags],
                cwd=home,
                user=number,
                group=group,
                extra_groups=groups,
                stdout=told,
                stderr=told,
            )
        try:
            address = f"host={home} user=postgres dbname=postgres"
            _wait(address, process, log)
            yield address
        finally:
            process.send_signal(signal.SIGINT)  # ends all connections
            try:
                process.wait(SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(SECONDS)


def _unprivileged() -> pwd.struct_passwd | None:
    """Return the user for the server: None keeps this process's user, unless this is root."""
    if os.geteuid() != 0:
        return None
    names = {user.pw_name: user for user in pwd.getpwall()}
    return names.get("postgres") or names["nobody"]


def _wait(address: str, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + SECONDS
    while True:
        try:
            psycopg.connect(address).close()
            return
        except psycopg.OperationalError:
            if process.poll() is not None or time.monotonic() > deadline:
                raise AssertionError(log.read_text(errors="replace")) from None
            time.sleep(0.05)
