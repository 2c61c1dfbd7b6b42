"""`artoo agent`: who is in the team, how far each is trusted, and whether it may work."""

from __future__ import annotations

import asyncio
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

import click

from artoo.cli.commands.options import HELP, as_json_option
from artoo.cli.display.sanitize import print_json
from artoo.cli.display.screen import report, show_lines
from artoo.cli.views.team_access import JsonObject, in_office
from artoo.contracts.agents import OPERATOR, TrustLevel
from artoo.contracts.errors import ConfigurationError

if TYPE_CHECKING:
    from datetime import datetime

    from artoo.agents.cognition.store import Session
    from artoo.agents.identity.folders import AgentFolder
    from artoo.agents.identity.identity import Identity
    from artoo.agents.identity.registry import AgentRecord
    from artoo.contracts.agents import PulseRecorded
    from artoo.team.office import Office
    from artoo.team.roster import Listed

_RECENT = 10


@dataclass(frozen=True, slots=True)
class Shown:
    """One agent as it is, with the latest of what it did."""

    row: Listed
    identity: Identity
    folder: AgentFolder
    accepted: bool
    unread: int
    pulses: tuple[PulseRecorded, ...]
    sessions: tuple[tuple[datetime, Session], ...]

    def plain(self) -> JsonObject:
        """For programs."""
        return {
            **asdict(self.row),
            "role": self.identity.role,
            "persona": self.identity.persona,
            "skills": self.identity.skills,
            "must_not": self.identity.limits.must_not,
            "tier": self.identity.tier,
            "identity": self.folder.identity,
            "accepted": self.accepted,
            "heartbeat": self.folder.heartbeat,
            "unread": self.unread,
            "pulses": self.pulses,
            "sessions": [
                {"at": at.isoformat(), "kind": one.kind, "summary": one.summary} for at, one in self.sessions
            ],
        }

    def lines(self) -> list[str]:
        """For people."""
        from artoo.cli.views.team_view import when

        lines = [f"{self.row.name}, {self.identity.role} ({self.row.trust}, {self.row.state})"]
        if self.identity.persona != self.identity.role:
            lines.append(self.identity.persona)
        for what, values in (("skills", self.identity.skills), ("must not", self.identity.limits.must_not)):
            if values:
                lines.append(f"{what}: {', '.join(values)}")
        accepted = "accepted" if self.accepted else "NOT the accepted one"
        lines += [f"identity: {self.folder.identity} ({accepted})", f"unread letters: {self.unread}"]
        for pulse in self.pulses:
            why = f": {pulse.why}" if pulse.why else ""
            lines.append(f"pulse {when(pulse.due_at)}  {pulse.outcome} x{pulse.count}{why}")
        lines += [f"{when(at)}  {session.kind}: {session.summary}" for at, session in self.sessions]
        return lines


@click.group(invoke_without_command=True, context_settings=HELP)
@as_json_option
@click.pass_context
def agent(context: click.Context, as_json: bool) -> None:
    """The agents of this home. Without a command: the list of them."""
    if context.invoked_subcommand is None:
        context.invoke(list_, as_json=as_json)


@agent.command("new")
@click.argument("name")
@click.option("--role", default="assistant", show_default=True, help="What it is, in a word or two.")
@click.option("--persona", default="", help="How it works, in a few sentences.")
@click.option("--skill", "skills", multiple=True, help="What it is good at (may be repeated).")
@click.option("--must-not", multiple=True, metavar="TOOL", help="A tool that it may not use (may be repeated).")
@click.option(
    "--trust",
    type=click.Choice([level.value for level in TrustLevel]),
    default=TrustLevel.PROBATION.value,
    show_default=True,
    help="How far its own work goes unreviewed.",
)
@as_json_option
def new(
    name: str,
    role: str,
    persona: str,
    skills: tuple[str, ...],
    must_not: tuple[str, ...],
    trust: str,
    as_json: bool,
) -> None:
    """Make an agent called NAME: a folder with its identity and its HEARTBEAT.md."""

    async def work(office: Office) -> AgentRecord:
        from artoo.agents.identity.folders import create_agent, folder_of
        from artoo.tools.core.tool_names import check_identities

        check_identities(must_not)
        known = {record.name: record for record in await office.registry.list()}
        if name in known and known[name].retired:
            raise ConfigurationError(
                f"{name} is retired, and the name stays with its letters and its work: choose another, or take it"
                f" back (artoo agent accept {name})"
            )
        gone = name in known and not office.machine and not folder_of(office.home, name).identity.exists()
        if name in known and not gone:
            raise ConfigurationError(f"there is an agent called {name!r} already; choose another name")
        identity = await asyncio.to_thread(
            create_agent, office.home, name, role=role, persona=persona, skills=skills, must_not=must_not
        )
        made = await office.registry.register(name, OPERATOR, sha256=identity.sha256, trust=TrustLevel(trust))
        if gone:  # made anew: what it was given is its own again
            await office.registry.accept(folder_of(office.home, name), OPERATOR)
            made = await office.registry.set_trust(name, TrustLevel(trust), OPERATOR)
        await _lent(office, (await asyncio.to_thread(office.folders)).named(name))
        return made

    record = in_office(work)
    from artoo.team.roster import listed

    made = f"{name} is there ({record.trust.value}). Its files are in agents/{name} of artoo's home."
    report(listed(record), [made], as_json=as_json)


@agent.command("list")
@as_json_option
def list_(as_json: bool) -> None:
    """Show all agents, and folders that are none."""
    from artoo.team.roster import roster

    rows, problems = in_office(roster)
    if as_json:
        print_json({"agents": rows, "problems": problems})
        return
    from artoo.cli.views.team_view import show_table

    table = [(row.name, row.trust or "-", row.state, row.detail) for row in rows]
    show_table(("name", "trust", "state", ""), table, "There is no agent yet: artoo agent new NAME")
    if problems:
        show_lines(f"! {problem}" for problem in problems)


@agent.command("show")
@click.argument("name")
@as_json_option
def show_(name: str, as_json: bool) -> None:
    """Show one agent: its identity, its latest pulses, what it did."""
    found = in_office(lambda office: _shown(office, name))
    report(found.plain(), found.lines(), as_json=as_json)


@agent.command("trust")
@click.argument("name")
@click.argument("level", type=click.Choice([level.value for level in TrustLevel]))
def trust(name: str, level: str) -> None:
    """Say how far NAME's own work goes without review."""
    in_office(lambda office: office.registry.set_trust(name, TrustLevel(level), OPERATOR))
    click.echo(f"{name} is {level} now.")


@agent.command("pause")
@click.argument("name")
@click.option("--why", default="", help="For the record.")
def pause(name: str, why: str) -> None:
    """Let NAME take nothing new; what it works on it may finish."""
    in_office(lambda office: office.registry.pause(name, OPERATOR, why))
    click.echo(f"{name} is paused; artoo agent resume {name} ends that.")


@agent.command("resume")
@click.argument("name")
def resume(name: str) -> None:
    """End NAME's pause."""
    record = in_office(lambda office: office.registry.resume(name, OPERATOR))
    stopped = f"{name} is still stopped: {record.stopped}; artoo agent accept {name} ends that."
    click.echo(stopped if record.stopped else f"{name} works again.")


@agent.command("retire")
@click.argument("name")
@click.option("--why", default="", help="For the record.")
@as_json_option
def retire(name: str, why: str, as_json: bool) -> None:
    """End NAME: it does nothing more. Its tasks are anybody's; all that it left is kept, and its name with it.

    What it handed in still waits for its review. `artoo agent accept NAME` takes it back.
    """
    from artoo.team.roster import KEPT, Standing

    given = in_office(lambda office: office.registry.retire(name, OPERATOR, why))
    said = f"{name} is retired; {KEPT.format(name=name)}. Tasks that are anybody's now: {len(given)}."
    report({"name": name, "state": Standing.RETIRED, "given_back": list(given)}, [said], as_json=as_json)


@agent.command("accept")
@click.argument("name")
def accept(name: str) -> None:
    """Accept NAME's identity file as it is now. Read it first: it stands in every prompt."""

    async def work(office: Office) -> str:
        folder = await _folder(office, name)
        if name not in {record.name for record in await office.registry.list()}:
            await office.registry.register(name, OPERATOR)
        accepted = await office.registry.accept(folder, OPERATOR)
        await _lent(office, folder)
        return accepted.sha256

    click.echo(f"{name} is accepted with identity {in_office(work)[:16]}…")


async def _folder(office: Office, name: str) -> AgentFolder:
    """Raises ConfigurationError when there is none; of an agent that there was, with what can be done."""
    from artoo.team.roster import GONE

    found = await asyncio.to_thread(office.folders)
    known = {record.name for record in await office.registry.list()}
    if name in known and not office.machine and name not in {each.name for each in found.agents}:
        raise ConfigurationError(f"{name}: {GONE.format(name=name)}")
    return found.named(name)


async def _lent(office: Office, folder: AgentFolder) -> None:
    """Machines that only work learn who the agent is."""
    if office.cluster is not None:
        record = await office.registry.get(folder.name)
        await office.cluster.agent_files.lend(folder, record.identity_sha256)


async def _shown(office: Office, name: str) -> Shown:
    from artoo.agents.cognition.store import CognitionStore
    from artoo.agents.identity.identity import read_identity
    from artoo.team.roster import listed

    record = await office.registry.get(name)
    folder = await _folder(office, name)
    identity = await asyncio.to_thread(read_identity, folder.identity, name)
    days = office.config.runtime.memory.episodic.session_retention_days
    return Shown(
        row=listed(record),
        identity=identity,
        folder=folder,
        accepted=identity.sha256 == record.identity_sha256,
        unread=await office.mailbox.unread(name),
        pulses=await office.pulses.recent(name, _RECENT),
        sessions=await CognitionStore(office.database, name, days).sessions(_RECENT),
    )
