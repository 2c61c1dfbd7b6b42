"""What holds for every test."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Generator
from pathlib import Path

import pytest
from hypothesis import settings

from artoo.store.address import StoreAddress
from artoo.testing import forbid_real_models
from fetch_postgres import PROGRAMS
from postgres_server import NoPostgres, Programs, Server

# The suite is a gate: the same commit passes or fails the same way everywhere. `make torture` searches on.
settings.register_profile("gate", derandomize=True, database=None)
settings.register_profile("search", derandomize=False)
settings.load_profile("gate")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect without the garbage collector, and keep the collected objects out of its later runs.

    Modules and test items are half a million objects that live to the end. Scanning them again and again took a
    third of the time of the collection, and a seventh of that of the tests.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.collect()
        gc.freeze()


_SLOW = ("test_browser", "test_embedded_model", "test_chinese", "test_mcp_client")
"""The files that take longest. They begin first, so that no worker is alone with one at the end."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Lift the time limit of soaks and matrices, and put the slowest files first."""
    for item in items:
        if item.get_closest_marker("torture") is not None:
            item.add_marker(pytest.mark.timeout(0))
    items.sort(key=lambda item: not item.path.stem.startswith(_SLOW))


@pytest.fixture(autouse=True)
def no_real_models(request: pytest.FixtureRequest) -> Generator[None]:
    """Only tests marked `embedded` may reach a real model; the others fail with a clear error instead."""
    allowed = request.node.get_closest_marker("embedded") is not None  # pyright: ignore[reportUnknownMemberType]
    with forbid_real_models(allow=allowed):
        yield


@pytest.fixture(scope="session")
def postgres() -> Generator[Server]:
    """A real PostgreSQL server, one for each process of pytest, begun when a test first asks."""
    try:
        server = Server.start()
    except NoPostgres as error:
        pytest.skip(str(error))
    try:
        yield server
    finally:
        server.stop()


@pytest.fixture(scope="session")
def oldest_postgres() -> Generator[Server]:
    """A server of the oldest version that is supported, which speaks TLS: what `make postgres` fetches."""
    if not PROGRAMS.exists():
        pytest.skip("there is no PostgreSQL 14 here: make postgres")
    server = Server.start(Programs(PROGRAMS))
    try:
        yield server
    finally:
        server.stop()


@pytest.fixture
def store(postgres: Server) -> Generator[StoreAddress]:
    """A shared store of the test's own, set up and empty."""
    address = postgres.new_database()
    try:
        yield address
    finally:
        postgres.drop(address)


_REPLAYED = frozenset(
    (
        *("test_dual_loop", "test_resume", "test_parallel_parts", "test_consent", "test_steered_tasks"),
        *("test_kinds", "test_memory_in_tasks"),
    )
)
"""Files whose tests run tasks of every kind, and whose task logs are replayed."""


@pytest.fixture(autouse=True)
def logs_replay(request: pytest.FixtureRequest) -> Generator[None]:
    """Prove every task log that such a test leaves in its directory: a replay decides the same, and no invariant is
    broken.
    """
    names = request.fixturenames
    if request.path.stem not in _REPLAYED or "tmp_path" not in names:
        yield
        return
    if "monkeypatch" in names:
        request.getfixturevalue("monkeypatch")  # set up before this one, so what it replaced is replaced still
    folder: Path = request.getfixturevalue("tmp_path")
    yield
    logs = {path.parent for home in (".", "*") for path in folder.glob(f"{home}/tasks/*/log.jsonl")}
    if logs:
        asyncio.run(assert_replay(sorted(logs)))


async def assert_replay(logs: list[Path]) -> None:
    """Each of these tasks, run again without model and tools, decides as its log says, and breaks no invariant."""
    from artoo.contracts.errors import MessageUnreadable
    from artoo.contracts.recording import TaskOpened
    from artoo.runtime.replay.replay import prove
    from artoo.tasklog.reader import TaskLogReader

    for log in logs:
        try:
            messages = list(TaskLogReader(log))
        except MessageUnreadable:
            continue  # a test of what happens to such a log
        if any(isinstance(getattr(message, "payload", None), TaskOpened) for message in messages[:1]):
            proof = await prove(messages, patience=5.0, grace=1.0)
            assert proof.replayed.difference is None, f"replay of {log.name}: {proof.replayed.difference}"
            assert proof.holds, f"{log.name}: {[f'{each.rule}: {each.what}' for each in proof.violations]}"
