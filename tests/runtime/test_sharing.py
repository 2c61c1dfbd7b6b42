# pyright: reportPrivateUsage=false
"""What a machine logs reaches the store, and whoever changes it there or here is found out."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest
from click.testing import CliRunner

from artoo import Artoo, Config, RunOptions
from artoo.auditor.chain import Head, add
from artoo.auditor.layout import ANCHORS, audit_directory, chains_in
from artoo.auditor.verify import LogProblem, Verification, verify
from artoo.cli.commands.log_command import log as log_command
from artoo.contracts.errors import ConfigurationError
from artoo.contracts.memory import MemoryAction
from artoo.contracts.tags import tool_pair
from artoo.memory.opening import open_store
from artoo.runtime.app.machine_name import machine_name
from artoo.runtime.app.system import SystemClock, UuidIds
from artoo.runtime.cluster.remote_logs import find_log_elsewhere, list_elsewhere, verify_shared
from artoo.runtime.cluster.upload_logs import Sharing
from artoo.store import stream
from artoo.store.address import StoreAddress
from artoo.store.connecting import connect
from artoo.tasklog.layout import task_directory, tasks_directory
from artoo.testing import ScriptedModel
from postgres_server import Server

ANSWERED = {"text": "there is an answer", "check": {"check": "output_matches", "regex": r"[A-Za-z0-9]"}}
SCRIPT = {
    "Plan": {"subtasks": [{"intent": "list it", "tool": "find_files", "success_criteria": [ANSWERED]}]},
    "ExecutorStep": {"tool": "find_files", "input": "*.txt", "is_final": True},
}


@dataclass
class Laptop:
    """A home of its own that shares a store."""

    place: Path
    address: StoreAddress

    @property
    def home(self) -> Path:
        return self.place / "home"

    @property
    def machine(self) -> str:
        return machine_name(self.home)

    async def work(self) -> str:
        """One task, from the opening to the end; its id."""
        (self.place / "project").mkdir(parents=True, exist_ok=True)
        (self.place / "project" / "a.txt").write_text("x\n")
        config = Config(workspace=self.place / "workspace", store=self.address.url).at_home(self.home)
        with ScriptedModel(SCRIPT) as model:
            async with Artoo(config, environ={}, model=model) as artoo:
                result = await artoo.run("list the text files", options=RunOptions(project=self.place / "project"))
                while not self._witnessed_all():
                    await artoo.audit()
        return result.task_id

    def _witnessed_all(self) -> bool:
        """Whether this machine has put every other on record; a store that is away has nothing to be seen."""
        try:
            with connect(self.address) as connection:
                others = stream.latest_of_others(connection, self.machine)
                query = b"SELECT count(DISTINCT machine) AS seen FROM audit_witnesses WHERE witness = %s"
                row = connection.execute(query, (self.machine,)).fetchone()
                return row is not None and row["seen"] >= len(others)
        except psycopg.OperationalError:
            return True

    async def idle(self) -> None:
        """Opens and closes: what an earlier process could not send is sent."""
        config = Config(workspace=self.place / "workspace", store=self.address.url).at_home(self.home)
        with ScriptedModel({}) as model:
            async with Artoo(config, environ={}, model=model):
                pass

    def proof(self) -> Verification:
        """What `artoo audit verify` looks at."""
        found = verify(audit_directory(self.home), tasks_directory(self.home))
        verify_shared(self.home, self.address, found)
        return found

    def problems(self) -> list[LogProblem]:
        return self.proof().problems


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """The store is looked at more often than people need."""
    monkeypatch.setattr("artoo.runtime.cluster.upload_logs.EVERY_SECONDS", 0.05)


@pytest.fixture
def laptops(store: StoreAddress, tmp_path: Path) -> tuple[Laptop, Laptop]:
    """Two machines."""
    return Laptop(tmp_path / "one", store), Laptop(tmp_path / "other", store)


async def test_a_task_is_read_on_another_machine(laptops: tuple[Laptop, Laptop]) -> None:
    """The log of a task is the same there, line for line; its memory is there as well."""
    one, other = laptops
    task = await one.work()
    here = task_directory(one.home, task)
    there = find_log_elsewhere(other.home, other.address, task[:13])
    assert (there.directory / "log.jsonl").read_bytes() == (here / "log.jsonl").read_bytes()
    assert [each.id for each in there.envelopes()]
    environ = {"ARTOO_HOME": str(other.home), "ARTOO_STORE": other.address.url}
    shown = CliRunner(env=environ).invoke(log_command, ["show", task])
    assert shown.exit_code == 0 and "list the text files" in shown.output
    with pytest.raises(ConfigurationError, match="is no task of any machine"):
        find_log_elsewhere(other.home, other.address, "0000")
    memory = await open_store(other.address, other.home / "spool", SystemClock(), UuidIds())
    assert (await memory.query_mk(*tool_pair("find_files"))).action is MemoryAction.EXPLOIT
    await memory.close()


async def test_tasks_of_all_machines_are_listed(
    laptops: tuple[Laptop, Laptop], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The list has every machine's tasks, latest first, with machine, request and ending, from the ends of their
    logs alone; a store that is away leaves this machine's, and says so."""
    one, other = laptops
    tasks = [await one.work(), await other.work(), await one.work()]
    log = (task_directory(one.home, tasks[0]) / "log.jsonl").read_bytes()
    in_last_line = len(log) - len(log.splitlines()[-1]) // 2
    for ends in (256 * 1024, 4_000, in_last_line):  # whole, without the middle, a cut last line
        monkeypatch.setattr("artoo.runtime.cluster.remote_logs.ENDS", ends)
        found = list_elsewhere(other.home, other.address, 20)
        assert [each.summary.task_id for each in found] == [tasks[2], tasks[0]]
        assert {each.machine for each in found} == {one.machine}
        assert {each.summary.request for each in found} == {"list the text files"}
        assert all(each.summary.result is not None for each in found)
    assert [each.summary.task_id for each in list_elsewhere(other.home, other.address, 1)] == [tasks[2]]
    environ = {"ARTOO_HOME": str(other.home), "ARTOO_STORE": other.address.url, "COLUMNS": "160"}
    listed = CliRunner(env=environ).invoke(log_command, ["list"])
    assert listed.exit_code == 0 and listed.output.count(one.machine) == 2 and listed.output.count("here") == 1
    alone = CliRunner(env=environ).invoke(log_command, ["list", "--here"])
    assert one.machine not in alone.output and tasks[1][:13] in alone.output
    away = environ | {"ARTOO_STORE": "postgresql://nobody@/nothing?host=/nowhere"}
    told = CliRunner(env=away).invoke(log_command, ["list"])
    assert told.exit_code == 0 and tasks[1][:13] in told.output and "only tasks of this machine" in told.stderr


async def test_every_machine_proves_all_audits(laptops: tuple[Laptop, Laptop]) -> None:
    """Both audits are whole, seen from either machine, and each has put the other's on record."""
    one, other = laptops
    for laptop in (one, other, one):
        await laptop.work()
    assert one.problems() == []
    assert other.problems() == []
    seen = {each.machine for each in one.proof().witnessed} | {each.machine for each in other.proof().witnessed}
    assert seen == {one.machine, other.machine}


async def test_a_lost_audit_is_named(laptops: tuple[Laptop, Laptop]) -> None:
    """A machine that has lost its chains, its anchors as well, is told which ones; the other still proves them."""
    one, other = laptops
    await one.work()
    (chain,) = chains_in(audit_directory(one.home))
    shutil.rmtree(audit_directory(one.home))
    shutil.rmtree(tasks_directory(one.home))
    found = one.problems()
    assert any(each.what == "missing" and chain in each.file.name for each in found)
    assert any(each.what == "cut" and each.file.name == ANCHORS for each in found)
    assert other.problems() == []


async def test_a_store_that_forgets_is_named(laptops: tuple[Laptop, Laptop]) -> None:
    """Who owns the store can change its anchors, and a machine that put them on record says so."""
    one, other = laptops
    await one.work()
    await other.work()
    assert [each.machine for each in other.proof().witnessed] == [one.machine]
    with connect(other.address) as connection:
        connection.execute("UPDATE audit_anchors SET hash = repeat('0', 64) WHERE machine = %s", (one.machine,))
    assert any("this machine saw anchor" in each.detail for each in other.problems())
    with connect(other.address) as connection:
        connection.execute("DELETE FROM audit_anchors WHERE machine = %s", (one.machine,))
    assert any("the store has none" in each.detail for each in other.problems())


async def test_what_was_logged_without_the_store_is_sent_later(
    postgres: Server, laptops: tuple[Laptop, Laptop], caplog: pytest.LogCaptureFixture
) -> None:
    """A task runs to its end while the store is away; the next start sends its log."""
    one, other = laptops
    postgres.end()
    try:
        task = await one.work()
        found = one.problems()
        assert [each.what for each in found] == ["missing"] and "could not be asked" in found[0].detail
    finally:
        postgres.run()
    assert "logs stay on this machine" in caplog.text
    await one.idle()
    assert find_log_elsewhere(other.home, other.address, task).task_id() == task


def test_a_worker_cannot_rewrite_what_is_anchored(store: StoreAddress) -> None:
    """The tables that vouch for audits are append-only for a machine that only works."""
    with connect(store) as connection:
        for table in ("audit_anchors", "audit_witnesses"):
            row = connection.execute(
                b"SELECT has_table_privilege('artoo_worker', %s, 'INSERT') AS adds,"
                b" has_table_privilege('artoo_worker', %s, 'UPDATE') AS changes,"
                b" has_table_privilege('artoo_worker', %s, 'DELETE') AS removes",
                (table, table, table),
            ).fetchone()
            assert row == {"adds": True, "changes": False, "removes": False}


def test_what_the_home_has_forgotten_goes_from_the_store(store: StoreAddress, tmp_path: Path) -> None:
    """What the audit says was forgotten, of this home only; what was deleted by hand stays in the store."""
    task_directory(tmp_path, "c1").mkdir(parents=True)
    here = machine_name(tmp_path)
    with connect(store) as connection:
        for task in ("a1", "b1", "c1"):
            stream.put(connection, here, f"tasks/{task}/log.jsonl", 0, b"1\n", task)
        stream.put(connection, "another", "tasks/a1/log.jsonl", 0, b"1\n", "a1")
    one, head = add(Head(), {"type": "log_forgotten", "at": "2026-01-01T00:00:00Z", "task": "a1"})
    two, _ = add(head, {"type": "log_forgotten", "at": "2026-01-01T00:00:00Z", "task": "c1"})  # and here again
    audit_directory(tmp_path).mkdir()
    (audit_directory(tmp_path) / "audit-one.jsonl").write_bytes(one + two)
    kept = sorted([("another", "a1"), (here, "b1"), (here, "c1")])
    with connect(store) as connection:
        for _ in range(6):  # a slow one leaves the rest to the next
            send_all(store, tmp_path)
            if sorted(stream.tasks(connection, "", 10)) == kept:
                break
        assert sorted(stream.tasks(connection, "", 10)) == kept


def send_all(store: StoreAddress, home: Path) -> None:
    """What a process of this home sends until it ends."""
    sharing = Sharing(home, store)
    sharing.start()
    sharing.close()
