"""`artoo agent`: who is in the team, how far each is trusted, and whether it may work."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import click

from artoo.cli.office import JsonObject, in_office
from artoo.cli.options import HELP, as_json_option
from artoo.cli.printable import print_json
from artoo.contracts.agents import OPERATOR, TrustLevel
from artoo.contracts.errors import ConfigurationError

if TYPE_CHECKING:
    from artoo.agents.folders import AgentFolder
    from artoo.agents.registry import AgentRecord
    from artoo.runtime.team.office import Office

_ELSEWHERE = "its folder is on another machine"
_GONE = (
    "its folder is gone: put agents/{name} back and accept it (artoo agent accept {name}), make it anew"
    " (artoo agent new {name}), or end it (artoo agent retire {name})"
)
_RETIRED = "what it left is kept; artoo agent accept {name} takes it back"
FOLDER_GONE = "folder gone"
RETIRED, READY = "retired", "ready"
_RECENT = 10


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
        from artoo.agents.folders import create_agent, folder_of
        from artoo.tools.names import check_identities

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
    if as_json:
        print_json(_record_object(record))
        return
    from artoo.cli.printable import show

    show(f"{name} is there ({record.trust.value}). Its files are in agents/{name} of artoo's home.")


@agent.command("list")
@as_json_option
def list_(as_json: bool) -> None:
    """Show all agents, and folders that are none."""
    rows, problems = in_office(listed)
    if as_json:
        print_json({"agents": rows, "problems": problems})
        return
    from artoo.cli.team_view import show_lines, show_table

    table = [(str(row["name"]), str(row["trust"] or "-"), str(row["state"]), str(row["detail"])) for row in rows]
    show_table(("name", "trust", "state", ""), table, "There is no agent yet: artoo agent new NAME")
    show_lines(f"! {problem}" for problem in problems)


@agent.command("show")
@click.argument("name")
@as_json_option
def show_(name: str, as_json: bool) -> None:
    """Show one agent: its identity, its latest pulses, what it did."""
    found = in_office(lambda office: _shown(office, name))
    if as_json:
        print_json(found)
        return
    from artoo.cli.team_view import show_lines

    show_lines(_lines(found))


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
    given = in_office(lambda office: office.registry.retire(name, OPERATOR, why))
    if as_json:
        print_json({"name": name, "state": RETIRED, "given_back": list(given)})
        return
    click.echo(f"{name} is retired; {_RETIRED.format(name=name)}. Tasks that are anybody's now: {len(given)}.")


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
    found = await asyncio.to_thread(office.folders)
    known = {record.name for record in await office.registry.list()}
    if name in known and not office.machine and name not in {each.name for each in found.agents}:
        raise ConfigurationError(f"{name}: {_GONE.format(name=name)}")
    return found.named(name)


async def _lent(office: Office, folder: AgentFolder) -> None:
    """Machines that only work learn who the agent is."""
    from artoo.runtime.team.borrowed import lend

    if office.agent_files is not None:
        record = await office.registry.get(folder.name)
        await lend(office.agent_files, folder, record.identity_sha256)


async def listed(office: Office) -> tuple[list[JsonObject], list[str]]:
    """The agents as rows, and what is wrong with folders that are none."""
    found = await asyncio.to_thread(office.folders)
    records = {record.name: record for record in await office.registry.list()}
    rows: list[JsonObject] = []
    for folder in found.agents:
        record = records.pop(folder.name, None)
        if record is None:
            detail = f"read {folder.identity}, then: artoo agent accept {folder.name}"
            rows.append({"name": folder.name, "trust": None, "state": "not accepted", "detail": detail})
        elif record.retired:
            rows.append({**_record_object(record), "detail": _RETIRED.format(name=record.name)})
        else:
            rows.append({**_record_object(record), **await asyncio.to_thread(_altered, folder, record)})
    retired = [record for record in records.values() if record.retired]
    rows += [{**_record_object(record), "detail": _RETIRED.format(name=record.name)} for record in retired]
    records = {name: record for name, record in records.items() if not record.retired}
    if office.machine:
        rows += [{**_record_object(record), "detail": record.stopped or _ELSEWHERE} for record in records.values()]
        return rows, list(found.problems)
    for record in records.values():
        rows.append({**_record_object(record), "state": FOLDER_GONE, "detail": _GONE.format(name=record.name)})
    gone = [f"{name}: {_GONE.format(name=name)}" for name, record in records.items() if not record.paused]
    return rows, [*found.problems, *gone]


def _altered(folder: AgentFolder, record: AgentRecord) -> JsonObject:
    """What is said of an agent whose identity on disk is not the accepted one, before a pulse finds out."""
    from artoo.agents.identity import digest

    if digest(folder.identity) == record.identity_sha256:
        return {}
    why = record.stopped or "its identity was changed since it was accepted"
    return {
        "state": "not accepted",
        "detail": f"{why}; read {folder.identity}, then: artoo agent accept {folder.name}",
    }


def _record_object(record: AgentRecord) -> JsonObject:
    working = "stopped" if record.stopped else "paused" if record.paused else READY
    state = RETIRED if record.retired else working
    return {"name": record.name, "trust": record.trust.value, "state": state, "detail": record.stopped}


async def _shown(office: Office, name: str) -> JsonObject:
    from artoo.agents.cognition_store import CognitionStore
    from artoo.agents.identity import read_identity

    record = await office.registry.get(name)
    folder = await _folder(office, name)
    identity = await asyncio.to_thread(read_identity, folder.identity, name)
    days = office.config.runtime.memory.episodic.session_retention_days
    sessions = await CognitionStore(office.database, name, days).sessions(_RECENT)
    return {
        **_record_object(record),
        "role": identity.role,
        "persona": identity.persona,
        "skills": list(identity.skills),
        "must_not": list(identity.limits.must_not),
        "tier": identity.tier,
        "identity": str(folder.identity),
        "accepted": identity.sha256 == record.identity_sha256,
        "heartbeat": str(folder.heartbeat),
        "unread": await office.mailbox.unread(name),
        "pulses": [pulse.model_dump(mode="json") for pulse in await office.pulses.recent(name, _RECENT)],
        "sessions": [
            {"at": at.isoformat(), "kind": session.kind, "summary": session.summary} for at, session in sessions
        ],
    }


def _lines(found: JsonObject) -> list[str]:
    lines = [f"{found['name']}, {found['role']} ({found['trust']}, {found['state']})", str(found["persona"])]
    for key in ("skills", "must_not"):
        values = found[key]
        if isinstance(values, list) and values:
            lines.append(f"{key.replace('_', ' ')}: {', '.join(map(str, values))}")  # pyright: ignore[reportUnknownArgumentType]
    accepted = "accepted" if found["accepted"] else "NOT the accepted one"
    lines += [f"identity: {found['identity']} ({accepted})", f"unread letters: {found['unread']}"]
    for pulse in _objects(found["pulses"]):
        why = f": {pulse['why']}" if pulse["why"] else ""
        lines.append(f"pulse {pulse['due_at']}  {pulse['outcome']} x{pulse['count']}{why}")
    lines += [f"{one['at']}  {one['kind']}: {one['summary']}" for one in _objects(found["sessions"])]
    return lines


def _objects(value: object) -> list[JsonObject]:
    return value if isinstance(value, list) else []  # pyright: ignore[reportUnknownVariableType]
