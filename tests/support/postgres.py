"""PostgreSQL clusters that the tests start themselves: in a temporary directory, on a Unix socket, without root."""

import functools
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self
from uuid import uuid4

import pytest

from kexpr.ledger.postgres_admin import install

USER = "kexpr"
_SETTINGS = {
    "listen_addresses": "''",
    "max_connections": "300",
    "shared_buffers": "16MB",
    "autovacuum": "off",
    "hot_standby": "on",
    "max_wal_senders": "4",
    "wal_sender_timeout": "2s",
    "logging_collector": "off",
}


def binaries() -> Path | None:
    """Where `initdb` and its like are: where the one on the path leads, or where Debian keeps them."""
    found = shutil.which("initdb")
    if found:
        return Path(found).resolve().parent
    places = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    return places[-1].parent if places else None


def require_binaries() -> Path:
    """Skips the test where PostgreSQL is not installed, unless `REQUIRE_INTEGRATION=1`."""
    found = binaries()
    if found is None:
        reason = "PostgreSQL (initdb, postgres) is not installed"
        if os.environ.get("REQUIRE_INTEGRATION") == "1":
            pytest.fail(reason)
        pytest.skip(reason)
    return found


class Cluster:
    """One data directory and the server on it. As root, both belong to `postgres` or `nobody`."""

    def __init__(self, binaries: Path, directory: Path) -> None:
        self._binaries = binaries
        self.directory = directory
        self.data = directory / "data"

    @classmethod
    def create(cls, binaries: Path) -> Self:
        cluster = cls(binaries, _private_directory())
        with cluster.removed_on_error():
            cluster.run("initdb", "-D", cluster.data, "-A", "trust", "-U", USER, "-E", "UTF8", "--locale=C", "-N")
            cluster.configure(_SETTINGS)
        return cluster

    @property
    def conninfo(self) -> str:
        return f"host={self.directory} user={USER} dbname=postgres"

    def configure(self, settings: dict[str, str]) -> None:
        """Append to the configuration; the last of a name counts."""
        lines = "".join(f"{name} = {value}\n" for name, value in settings.items())
        with (self.data / "postgresql.conf").open("a") as file:
            file.write(lines)

    def start(self) -> None:
        self.configure({"unix_socket_directories": f"'{self.directory}'"})
        log = self.directory / "log"
        self.run("pg_ctl", "-D", self.data, "-l", log, "-w", "-t", "30", "start")

    def stop(self) -> None:
        self.run("pg_ctl", "-D", self.data, "-m", "fast", "-w", "stop")

    def reload(self, settings: dict[str, str]) -> None:
        """Takes effect in every session within moments."""
        self.configure(settings)
        self.run("pg_ctl", "-D", self.data, "reload")

    def kill(self) -> None:
        """SIGKILL the server; returns when all its processes have noticed, so that it can be started again."""
        postmaster = int((self.data / "postmaster.pid").read_text().splitlines()[0])
        children = Path(f"/proc/{postmaster}/task/{postmaster}/children").read_text().split()
        os.kill(postmaster, signal.SIGKILL)
        for process in (postmaster, *map(int, children)):
            _await_end(process)
        (self.data / "postmaster.pid").unlink()

    def copy(self) -> "Cluster":
        """A base backup, ready to be started as a standby of this server."""
        standby = Cluster(self._binaries, _private_directory())
        with standby.removed_on_error():
            self.run("pg_basebackup", "-d", self.conninfo, "-D", standby.data, "-R", "-c", "fast", "-X", "stream")
        return standby

    def promote(self) -> None:
        self.run("pg_ctl", "-D", self.data, "-w", "promote")

    def execute(self, statement: str, *parameters: object) -> list[tuple[Any, ...]]:
        return execute(self.conninfo, statement, *parameters)

    def schema(self) -> str:
        """The connection string of a schema of its own, with the tables."""
        name = f"schema_{uuid4().hex}"
        self.execute(f"CREATE SCHEMA {name}")
        conninfo = f"{self.conninfo} options=-csearch_path={name}"
        install(conninfo)
        return conninfo

    def remove(self) -> None:
        if (self.data / "postmaster.pid").exists():
            self.run("pg_ctl", "-D", self.data, "-m", "immediate", "-w", "stop")
        shutil.rmtree(self.directory)

    @contextmanager
    def removed_on_error(self) -> Iterator[None]:
        try:
            yield
        except BaseException:
            self.remove()
            raise

    def run(self, program: str, *arguments: object) -> None:
        command = [*_as_server_user(), str(self._binaries / program), *map(str, arguments)]
        done = subprocess.run(command, cwd="/", stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False)
        assert done.returncode == 0, done.stderr.decode()


@contextmanager
def running() -> Iterator[Cluster]:
    """A started cluster of one's own."""
    cluster = Cluster.create(require_binaries())
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.remove()


def execute(conninfo: str, statement: str, *parameters: object) -> list[tuple[Any, ...]]:
    """Run one statement on a connection of its own; the rows it has."""
    import psycopg

    with psycopg.connect(conninfo, autocommit=True) as connection:
        cursor = connection.execute(statement.encode(), parameters or None)
        return cursor.fetchall() if cursor.description else []


def installed(cluster: Cluster) -> Cluster:
    install(cluster.conninfo)
    return cluster


@functools.cache
def _server_user() -> pwd.struct_passwd | None:
    if os.geteuid() != 0:
        return None
    try:
        return pwd.getpwnam("postgres")
    except KeyError:
        return pwd.getpwnam("nobody")


def _as_server_user() -> list[str]:
    user = _server_user()
    if user is None:
        return []
    return ["setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups"]


def _private_directory() -> Path:
    """Below the system's temporary directory: the path of a socket is short, and the server's user can get there."""
    directory = Path(tempfile.mkdtemp(prefix="kexpr-pg-"))
    user = _server_user()
    if user is not None:
        os.chown(directory, user.pw_uid, user.pw_gid)
    return directory


def _await_end(process: int) -> None:
    for _ in range(1_000):
        if not Path(f"/proc/{process}").exists():
            return
        time.sleep(0.01)
    raise AssertionError("a server process did not end")
