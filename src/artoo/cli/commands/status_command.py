"""`artoo status`: its sections and their order; pending changes are worded in `results/pending_view.py`."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, cast

import click

from artoo.cli.commands.options import HELP, as_json_option
from artoo.cli.display.sanitize import print_json
from artoo.cli.views.team_access import JsonObject, in_office, plain_object
from artoo.contracts.agents import OPERATOR, BoardState
from artoo.contracts.errors import ArtooError
from artoo.runtime.config.loader import load_config

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from artoo.agents.board.operator_todo import Left
    from artoo.contracts.agents import PulseRecorded
    from artoo.contracts.solution import Cost
    from artoo.tasklog.reader import TaskSummary
    from artoo.team.office import Office

NOTHING_PENDING = "no pending changes"

LATEST = 20
"""Number of latest tasks among which stopped tasks are searched."""

MOST_WAITING = 20
"""Maximum number of listed tasks that need the operator. Further tasks are only counted."""


@dataclass(frozen=True, slots=True)
class Team:
    """The state of the team. `agents` and `machines` are JSON objects, because they are also printed for programs.

    `serving` is the process that serves this home. `tasks` has the number of tasks in each state, and `unread` the
    number of your letters.
    """

    memory_today: Cost
    serving: int | None
    agents: tuple[JsonObject, ...]
    tasks: dict[str, int]
    waiting_for_you: tuple[Left, ...]
    problems: tuple[str, ...]
    unread: int
    machines: tuple[JsonObject, ...]

    def plain(self) -> JsonObject:
        """Return the state as a JSON object for `print_json`."""
        waiting = [{**plain_object(one.task), "why": one.why} for one in self.waiting_for_you]
        return {**{each.name: getattr(self, each.name) for each in fields(self)}, "waiting_for_you": waiting}


@click.command(context_settings=HELP)
@as_json_option
def status(as_json: bool) -> None:
    """Show pending changes, stopped tasks, and the state of the team."""
    from artoo.cli.results.pending_view import all_waiting, waiting_lines, waiting_object
    from artoo.runtime.changes.startup_recovery import drop_expired
    from artoo.runtime.task.resumable_tasks import left_undone

    config = load_config()
    drop_expired(config)
    waiting = all_waiting(config)
    found, problem = _of_the_team()
    # A task with pending changes is listed with its changes, and not a second time among the stopped tasks.
    known = {one.task_id for one in waiting}
    stopped = tuple(one for one in left_undone(config.home, LATEST) if one.task_id not in known)
    if as_json:
        more = {
            "changes_waiting": [waiting_object(one) for one in waiting],
            "stopped": [{"task_id": one.task_id, "request": one.request} for one in stopped],
        }
        print_json({**({"problems": [str(problem)]} if found is None else found.plain()), **more})
        _raise(problem)
        return
    from artoo.cli.display.screen import show_lines

    own = tuple(one for one in waiting if not one.on_board)
    teams = tuple(one for one in waiting if one.on_board)
    waits = ["pending changes:", *waiting_lines(own, config.home)] if own else [NOTHING_PENDING]
    if teams:
        waits += ["work of the team, not approved yet:", *waiting_lines(teams, config.home)]
    show_lines([*waits, *_stopped_lines(stopped, config.home)])

    # Pending changes are shown first, so that they are visible even if the team's database cannot be reached.
    _raise(problem)
    if found is not None:
        show_lines(status_lines(found))


def _of_the_team() -> tuple[Team | None, ArtooError | None]:
    """Return the state of the team, or the error that occurred while it was read. In both cases the pending changes
    are shown."""
    try:
        return in_office(_status), None
    except ArtooError as error:
        return None, error


def _raise(problem: ArtooError | None) -> None:
    if problem is not None:
        raise problem


def _stopped_lines(stopped: Sequence[TaskSummary], home: Path) -> list[str]:
    """List the tasks that were interrupted before they changed anything. They have no pending changes."""
    from artoo.cli.display.sanitize import asked_line
    from artoo.cli.results.task_names import name_at

    lines = ["stopped before their end:"] if stopped else []
    for one in stopped:
        name = name_at(home, one.task_id)
        lines += [f"  {name}  {asked_line(one.request)}", f"      artoo resume {name}, artoo discard {name}"]
    return lines


async def _status(office: Office) -> Team:
    from artoo.agents.board.board import MOST_TASKS
    from artoo.agents.board.operator_todo import left_to_operator
    from artoo.runtime.task.background_budget import spent_on
    from artoo.team.locks import serving
    from artoo.team.roster import AgentStatus, roster

    tasks = await office.board.list(limit=MOST_TASKS)
    counted = Counter(task.state.value for task in tasks)
    rows, problems = await roster(office)
    working = {task.assignee: task.id for task in tasks if task.state is BoardState.IN_PROGRESS}
    agents: list[JsonObject] = [
        {
            **asdict(each),
            "unread": await office.mailbox.unread(each.name),
            "working_on": working.get(each.name),
            "pulse": next(iter(await office.pulses.recent(each.name, 1)), None),
        }
        for each in rows
        if each.state is not AgentStatus.RETIRED
    ]
    return Team(
        memory_today=await asyncio.to_thread(spent_on, office.home, office.clock.now().date()),
        serving=await asyncio.to_thread(serving, office.home),
        agents=tuple(agents),
        tasks={state.value: counted[state.value] for state in BoardState if counted[state.value]},
        waiting_for_you=await left_to_operator(office.database, office.policies),
        problems=tuple(problems),
        unread=await office.mailbox.unread(OPERATOR),
        machines=await _machines(office),
    )


async def _machines(office: Office) -> tuple[JsonObject, ...]:
    """Return the machines that share the store, and the agents that run on each of them. Without a store, return
    none."""
    from artoo.agents.board.claim_holders import machine_of

    if office.cluster is None:
        return ()
    seats = await office.cluster.seats.all()
    return tuple(
        {
            "machine": one.id,
            "program": one.program,
            "projects": tuple(one.projects),
            "last_seen_at": one.last_seen_at.isoformat(),
            "agents": tuple(agent for agent, holder in seats.items() if machine_of(holder) == one.id),
            "this": one.id == office.machine,
        }
        for one in await office.cluster.machines.list()
    )


def status_lines(found: Team) -> list[str]:
    """Return the state of the team as lines of text."""
    from artoo.cli.display.sanitize import one_line
    from artoo.cli.views.team_view import short

    serving = f"the team works (process {found.serving})"
    lines = ["no process serves the team: artoo serve" if found.serving is None else serving]
    if found.serving is not None or found.machines:
        lines += _skipped_lines(found.agents)
    lines += map(_agent_line, found.agents)
    for machine in found.machines:
        agents = ", ".join(cast("tuple[str, ...]", machine["agents"])) or "no agent"
        here = " (this one)" if machine["this"] else ""
        lines.append(f"machine {machine['machine']}{here}: {agents} at work, last seen {machine['last_seen_at']}")
    shown = ", ".join(f"{state} {count}" for state, count in found.tasks.items())
    lines.append(f"the team's tasks: {shown or 'none'}")
    if found.unread:
        lines.append(f"letters for you: {found.unread} (artoo mail)")
    waiting = found.waiting_for_you
    if waiting:
        lines.append("needs you (artoo task show ID):")
    lines += [f"  {short(one.task.id)} {one.why}: {one_line(one.task.text)[:60]}" for one in waiting[:MOST_WAITING]]
    if len(waiting) > MOST_WAITING:
        lines.append(f"  and {len(waiting) - MOST_WAITING} more (artoo status --json)")
    return [*lines, *_memory_today(found.memory_today), *(f"! {problem}" for problem in found.problems)]


def _agent_line(agent: JsonObject) -> str:
    from artoo.cli.views.team_view import short

    pulse, beat = cast("PulseRecorded | None", agent["pulse"]), ""
    if pulse is not None:
        done = f" ({pulse.why})" if pulse.outcome == "run" and pulse.why else ""
        beat = f", last pulse {pulse.outcome}{done}"
    doing = f", at task {short(str(agent['working_on']))}" if agent["working_on"] else ""
    # The problems at the end explain a missing folder, so it is not repeated at the agent.
    why = f": {agent['detail']}" if agent["detail"] and agent["state"] != "folder gone" else ""
    return (
        f"{agent['name']} ({agent['trust'] or '-'}, {agent['state']}{why}), unread {agent['unread']}{doing}{beat}"
    )


def _skipped_lines(agents: Sequence[JsonObject]) -> list[str]:
    """Return a line for each reason why beats were skipped, with the names of the agents."""
    stopped: dict[str, list[str]] = {}
    for agent in agents:
        pulse = cast("PulseRecorded | None", agent["pulse"])
        if pulse is not None and pulse.outcome == "skipped" and agent["state"] == "ready":
            stopped.setdefault(pulse.why, []).append(str(agent["name"]))
    return [f"{', '.join(names)}: no pulse is held: {why}" for why, names in stopped.items()]


def _memory_today(used: Cost) -> list[str]:
    """Return a line about the model calls that memory has made today by itself, if there were any."""
    from artoo.cli.display.symbols import money_text
    from artoo.words.catalogue import ENGLISH

    if not used.llm_calls:
        return []
    tokens = used.prompt_tokens + used.completion_tokens
    paid = "" if used.money is None else f", {money_text(used.money, ENGLISH)}"
    return [f"memory's own model calls today: {used.llm_calls:,} ({tokens:,} tokens{paid})"]
