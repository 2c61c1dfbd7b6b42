"""`artoo agent new|list|show|trust|pause|resume|retire|accept`: manage the agents of the team.

The commands create and list agents, set their levels of trust, and pause or retire them.
"""

from __future__ import annotations

import asyncio
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from artoo.cli.commands.options import HELP, as_json_option
from artoo.cli.display.screen import report
from artoo.cli.views.team_access import JsonObject, in_office
from artoo.contracts.agents import OPERATOR, TrustLevel
from artoo.contracts.errors import ConfigurationError
from artoo.words.shown import local_time

if TYPE_CHECKING:
    from artoo.agents.identity.folders import AgentFolder
    from artoo.agents.identity.registry import AgentRecord
    from artoo.team.office import Office

_RECENT = 10


@click.group(invoke_without_command=True, context_settings=HELP)
@as_json_option
@click.pass_context
def agent(context: click.Context, as_json: bool) -> None:
    """Manage the agents of this home. Without a command: list them."""
    if context.invoked_subcommand is None:
        context.invoke(list_, as_json=as_json)


@agent.command("new")
@click.argument("name")
@click.option("--role", default="assistant", show_default=True, help="Its role, in a word or two.")
@click.option("--persona", default="", help="How it works, in a few sentences.")
@click.option("--skill", "skills", multiple=True, help="A skill (may be repeated).")
@click.option("--must-not", multiple=True, metavar="TOOL", help="A tool that it must not use (may be repeated).")
@click.option(
    "--trust",
    type=click.Choice([level.value for level in TrustLevel]),
    default=TrustLevel.PROBATION.value,
    show_default=True,
    help="Its trust level, which decides how much of its work is reviewed.",
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
    """Create an agent called NAME, with a folder for its identity and its HEARTBEAT.md."""

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
        # An agent that returns because its folder exists again gets its earlier tasks back.
        if gone:
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
    """Show all agents, and folders that are not agents."""
    from artoo.team.roster import roster

    rows, problems = in_office(roster)
    from artoo.cli.views.team_view import table_lines

    table = [(row.name, row.trust or "-", row.state, row.detail) for row in rows]
    lines = table_lines(("name", "trust", "state", ""), table, "There is no agent yet: artoo agent new NAME")
    lines += [f"! {problem}" for problem in problems]
    report({"agents": rows, "problems": problems}, lines, as_json=as_json)


@agent.command("show")
@click.argument("name")
@as_json_option
def show_(name: str, as_json: bool) -> None:
    """Show one agent, with its identity, its latest pulses, and its latest work."""
    found, lines = in_office(lambda office: _shown(office, name))
    report(found, lines, as_json=as_json)


@agent.command("trust")
@click.argument("name")
@click.argument("level", type=click.Choice([level.value for level in TrustLevel]))
def trust(name: str, level: str) -> None:
    """Set the trust level of NAME, which decides how much of its work is reviewed."""
    in_office(lambda office: office.registry.set_trust(name, TrustLevel(level), OPERATOR))
    click.echo(f"{name} is {level} now.")


@agent.command("pause")
@click.argument("name")
@click.option("--why", default="", help="The reason, for the record.")
def pause(name: str, why: str) -> None:
    """Pause NAME. It may finish its present work, but takes no new tasks."""
    in_office(lambda office: office.registry.pause(name, OPERATOR, why))
    click.echo(f"{name} is paused; artoo agent resume {name} ends that.")


@agent.command("resume")
@click.argument("name")
def resume(name: str) -> None:
    """Resume NAME after a pause."""
    record = in_office(lambda office: office.registry.resume(name, OPERATOR))
    stopped = f"{name} is still stopped: {record.stopped}; artoo agent accept {name} ends that."
    click.echo(stopped if record.stopped else f"{name} works again.")


@agent.command("retire")
@click.argument("name")
@click.option("--why", default="", help="The reason, for the record.")
@as_json_option
def retire(name: str, why: str, as_json: bool) -> None:
    """Remove NAME from the team. Any agent can take its open tasks. Its mail, memory and submissions are kept.

    Its submissions still need their review. `artoo agent accept NAME` brings the agent back.
    """
    from artoo.team.roster import KEPT, AgentStatus

    given = in_office(lambda office: office.registry.retire(name, OPERATOR, why))
    said = f"{name} is retired; {KEPT.format(name=name)}. Tasks that are anybody's now: {len(given)}."
    report({"name": name, "state": AgentStatus.RETIRED, "given_back": list(given)}, [said], as_json=as_json)


@agent.command("accept")
@click.argument("name")
def accept(name: str) -> None:
    """Accept the current identity file of NAME. Read it first: it is part of every prompt of NAME."""

    async def work(office: Office) -> str:
        folder = await _folder(office, name)
        if name not in {record.name for record in await office.registry.list()}:
            await office.registry.register(name, OPERATOR)
        accepted = await office.registry.accept(folder, OPERATOR)
        await _lent(office, folder)
        return accepted.sha256

    click.echo(f"{name} is accepted with identity {in_office(work)[:16]}…")


async def _folder(office: Office, name: str) -> AgentFolder:
    """Return the folder of an agent. If it is missing, raise a ConfigurationError that says how to restore it."""
    from artoo.team.roster import GONE

    found = await asyncio.to_thread(office.folders)
    known = {record.name for record in await office.registry.list()}
    if name in known and not office.machine and name not in {each.name for each in found.agents}:
        raise ConfigurationError(f"{name}: {GONE.format(name=name)}")
    return found.named(name)


async def _lent(office: Office, folder: AgentFolder) -> None:
    """Copy the identity file of an agent to the shared store, so that machines that run `artoo serve worker` can
    use it."""
    if office.cluster is not None:
        record = await office.registry.get(folder.name)
        await office.cluster.agent_files.lend(folder, record.identity_sha256)


async def _shown(office: Office, name: str) -> tuple[JsonObject, list[str]]:
    """Return the description of an agent with its latest activity, as a JSON object and as lines of text."""
    from artoo.agents.cognition.store import CognitionStore
    from artoo.agents.identity.identity import read_identity
    from artoo.team.roster import listed

    record = await office.registry.get(name)
    folder = await _folder(office, name)
    identity = await asyncio.to_thread(read_identity, folder.identity, name)
    days = office.config.runtime.memory.episodic.session_retention_days
    sessions = await CognitionStore(office.database, name, days).sessions(_RECENT)
    pulses = await office.pulses.recent(name, _RECENT)
    row, accepted = listed(record), identity.sha256 == record.identity_sha256
    found: JsonObject = {
        **asdict(row),
        "role": identity.role,
        "persona": identity.persona,
        "skills": identity.skills,
        "must_not": identity.limits.must_not,
        "tier": identity.tier,
        "identity": folder.identity,
        "accepted": accepted,
        "heartbeat": folder.heartbeat,
        "unread": await office.mailbox.unread(name),
        "pulses": pulses,
        "sessions": [{"at": at.isoformat(), "kind": one.kind, "summary": one.summary} for at, one in sessions],
    }
    lines = [f"{name}, {identity.role} ({row.trust}, {row.state})"]
    lines += [identity.persona] if identity.persona != identity.role else []
    lists = (("skills", identity.skills), ("must not", identity.limits.must_not))
    lines += [f"{what}: {', '.join(values)}" for what, values in lists if values]
    lines.append(f"identity: {folder.identity} ({'accepted' if accepted else 'NOT the accepted one'})")
    lines.append(f"unread letters: {found['unread']}")
    for pulse in pulses:
        why = f": {pulse.why}" if pulse.why else ""
        lines.append(f"pulse {local_time(pulse.due_at)}  {pulse.outcome} x{pulse.count}{why}")
    return found, [*lines, *(f"{local_time(at)}  {session.kind}: {session.summary}" for at, session in sessions)]
