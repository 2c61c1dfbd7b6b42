"""A home in which something has happened everywhere: a team at its work, things learnt, an audit log."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

from web_scenes import TASK, whole

from artoo import Config
from artoo.agents.heartbeat.ledger import Beat, Outcome
from artoo.agents.identity.folders import create_agent
from artoo.auditor.chain import Head
from artoo.auditor.drift import Drift
from artoo.auditor.layout import audit_directory
from artoo.auditor.stats import Stats
from artoo.auditor.trail import Trail, encoded
from artoo.auditor.window import Window
from artoo.contracts.agents import OPERATOR, BoardTask, TrustLevel
from artoo.contracts.audit import Finding, Nature
from artoo.contracts.envelope import Envelope
from artoo.contracts.memory import DreamReport, Megram, TLayerProposal
from artoo.contracts.tags import Pair
from artoo.loops.slow.dreamer import Dreamer
from artoo.loops.slow.passing import DreamLimits
from artoo.memory import tables
from artoo.memory.dreams import Dreams
from artoo.memory.engines import engine_at
from artoo.runtime.app.system import SystemClock, UuidIds
from artoo.store.query import Engine
from artoo.team.office import Office, open_office
from board_work import take

FIND = Pair("tool:shell:find", "path:/home/ada")
NATURES: tuple[Nature, ...] = ("violation", "anomaly", "drift", "loss")


def config_of(home: Path) -> Config:
    """As the tests' pages have it."""
    return Config(workspace=home / "workspace").at_home(home)


async def hire(office: Office, name: str, trust: TrustLevel = TrustLevel.PROBATION) -> None:
    """A standing agent that does nothing by itself."""
    identity = create_agent(office.home, name, role="clerk", persona=f"{name} is exact.")
    await office.registry.register(name, OPERATOR, sha256=identity.sha256, trust=trust)


async def with_team(home: Path, said: str) -> dict[str, BoardTask]:
    """An agent, a task in each of five states whose text is `said`, and a letter to the operator."""
    async with open_office(config_of(home)) as office:
        await hire(office, "ada")
        names = ("pending", "in_progress", "blocked", "failed", "cancelled")
        made = {name: await office.board.add(f"{said} ({name})", OPERATOR, assignee="ada") for name in names}
        for name in ("in_progress", "blocked", "failed"):
            claim = await take(office.database, made[name].id, "ada")
            if name == "blocked":
                await office.board.work.block(claim.task.id, OPERATOR, said)
            if name == "failed":
                await office.board.work.fail(claim, said, said)
        await office.board.cancel(made["cancelled"].id, OPERATOR, said)
        await office.mailbox.send("ada", OPERATOR, said)
        now = office.clock.now()
        outcomes: tuple[Outcome, ...] = ("idle", "missed", "run")
        for number, outcome in enumerate(outcomes, 1):
            await office.pulses.record("ada", Beat(number, now), outcome, said)
        return {name: await office.board.get(one.id) for name, one in made.items()}


def megram(number: int, pair: Pair, sigma: float, content: str, *, level: str = "M", days: float = 0.0) -> Megram:
    """An experience of some days ago."""
    return Megram.model_validate(
        {
            "id": f"id-{number}", "level": level, "created_at": datetime.now(UTC) - timedelta(days=days),
            "space": pair.space, "entity": pair.entity, "content": content, "state": "accept", "f": 0.9,
            "sigma": sigma, "k": 0.0 if level == "C" else 0.05,
        }
    )  # fmt: skip


def learn(engine: Engine, *entries: Megram) -> None:
    """One transaction."""
    engine.write(lambda query: tables.add(query, entries))


async def with_memory(home: Path, said: str) -> DreamReport:
    """A bad pair that fades, a good tool, knowledge, a rule, an open proposal; then the Dreamer has passed."""
    engine, clock = engine_at(config_of(home).memory_path), SystemClock()
    try:
        glob, stale = Pair("tool:glob", "path:/home/ada"), Pair("tool:shell:cat", "path:/home/ada/old")
        learn(
            engine,
            megram(1, FIND, -1.0, said, days=20),
            megram(2, FIND, -1.0, said, days=10),
            megram(3, FIND, -1.0, said, level="C", days=9),
            megram(4, glob, 1.0, said),
            megram(5, glob, 1.0, said, level="K"),
            megram(6, stale, 1.0, said, days=900),
        )
        store = Dreams(engine, clock)
        async with store.turn():
            for name in ("p-1", "p-2"):
                proposal = TLayerProposal(id=name, proposed_at=clock.now(), text=said)
                await store.propose(proposal, f"proposed:{name}")
        dreamer = Dreamer(
            store, clock, UuidIds(), publish=lambda _: None, busy=lambda: False,
            limits=DreamLimits(duty=1.0, slice=2_048),
        )  # fmt: skip
        return await dreamer.dream()
    finally:
        engine.close()


def with_audit(home: Path, said: str) -> str:
    """A chain that was closed, and a window with a finding of each nature. Returns the chain's name."""
    now = SystemClock().now()
    directory = audit_directory(home)
    trail = Trail(directory)
    lines = [encoded({"type": "message", "at": now, "id": f"m{number}", "kind": "Plan"}) for number in range(7)]
    trail.write(lines, now, anchor=True)
    trail.close(now)
    stats, window = Stats(directory), Window(now - timedelta(hours=1))
    stats.note_anchors(trail.anchors, now)
    for nature in NATURES:
        window.add(Finding(rule=nature, nature=nature, what=said, at=now))
    for number, (role, payload) in enumerate(whole()):
        window.observe(Envelope(f"id-{number}", role, TASK, now, payload, None))
    stats.store(window, Drift(), Head(), now)
    return trail.chain


async def with_everything(home: Path, said: str = "Sort the invoices by customer") -> dict[str, BoardTask]:
    """All of the above."""
    with_audit(home, said)
    await with_memory(home, said)
    return await with_team(home, said)
