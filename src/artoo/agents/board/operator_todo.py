"""List the tasks that only the operator can continue, and decide if a machine counts as alive."""

from __future__ import annotations

from dataclasses import dataclass

from artoo.agents.board.rows import demanded, mover_of, open_questions, review_wanted, task_of
from artoo.agents.board.rules import Mover, Policies, check_reviewer
from artoo.agents.storage.database import Database
from artoo.agents.storage.monotonic_clock import seconds_us
from artoo.agents.storage.transaction import Reading, Row, Value
from artoo.contracts.agents import OPERATOR, BoardState, BoardTask
from artoo.contracts.errors import ActorRefused
from artoo.contracts.text import shortened

LONGEST_QUESTION = 300
"""Maximum number of characters of a question in this list."""

_ANSWERS = {
    BoardState.REVIEW: "artoo task review ID reject ANSWER, or approve",
    BoardState.FAILED: "artoo task move ID pending ANSWER",
}


_NOBODYS = (
    "(assignee IS NULL OR open_to_all) AND NOT EXISTS (SELECT 1 FROM agents WHERE stopped = '' AND NOT retired)"
)
"""SQL condition on a row of `tasks`. It is true if no agent can take the task, because there is none or all are
stopped or retired."""


_NOWHERE = (
    "(project <> '' AND EXISTS (SELECT 1 FROM machines) AND NOT EXISTS (SELECT 1 FROM machines"
    " WHERE last_seen_us >= :since"
    " AND replace(machines.projects, :quote || tasks.project || :quote, '') <> machines.projects))"
)
"""SQL condition on a row of `tasks`. It is true if several machines share the database, and none that was active
recently has the task's project."""

SEEN_SECONDS = 180.0
"""Maximum number of seconds since a machine's last activity for which the machine counts as active."""


@dataclass(frozen=True, slots=True)
class Left:
    """A task that only the operator can continue, and the reason."""

    task: BoardTask
    why: str


async def left_to_operator(database: Database, policies: Policies) -> tuple[Left, ...]:
    """Return the tasks that only the operator can continue. The task that has waited longest comes first. Raises
    ActivityStoreError."""

    def work(reading: Reading) -> tuple[Left, ...]:
        rows = reading.all(
            "SELECT * FROM tasks WHERE state IN ('review', 'failed', 'rejected')"
            " OR (state = 'blocked' AND NOT resumable) OR (state = 'pending' AND assignee = :operator)"
            " OR (state IN ('pending', 'blocked') AND assignee IN (SELECT name FROM agents WHERE stopped <> ''))"
            f" OR (state = 'pending' AND ({_NOBODYS} OR {_NOWHERE})) ORDER BY updated_at_us, id",
            {"operator": OPERATOR, **_recently(reading)},
        )
        # These data are read once for all tasks, because for each task in review all agents are checked.
        movers = _agents(reading)
        found = ((task_of(row), _why(reading, row, movers, policies)) for row in rows)
        return tuple(Left(task, why) for task, why in found if why)

    return await database.read(work)


def why_left(reading: Reading, row: Row, policies: Policies) -> str:
    """Return what the operator must do about this row of `tasks`. Return "" if an agent can continue the task."""
    if row["state"] == BoardState.BLOCKED and row["resumable"]:
        return ""
    return _why(reading, row, _agents(reading), policies)


def _agents(reading: Reading) -> list[Mover]:
    return [mover_of(reading, str(row["name"])) for row in reading.all("SELECT name FROM agents ORDER BY name")]


def _why(reading: Reading, row: Row, agents: list[Mover], policies: Policies) -> str:
    task = task_of(row)
    match task.state:
        case BoardState.REVIEW | BoardState.FAILED if asked := open_questions(reading, task.id):
            return f"asks: {shortened(' '.join(asked[-1].split()), LONGEST_QUESTION)} ({_ANSWERS[task.state]})"
        case BoardState.REVIEW:
            return _why_in_review(reading, task, agents, policies)
        case BoardState.FAILED:
            return "failed: let it be tried again, or cancel it"
        case BoardState.REJECTED:
            return "rejected too often: approve it after all, let it be tried again, or cancel it"
        case BoardState.PENDING | BoardState.BLOCKED if stopped := _stopped(reading, task.assignee):
            return f"{task.assignee} is stopped ({stopped}): give it to another, cancel it, or see artoo agent list"
        case BoardState.BLOCKED:
            return f"blocked: release it, or cancel it{_stood_in_the_way(reading, task.id)}"
        case BoardState.PENDING if task.assignee == OPERATOR:
            return "is yours to do"
        case BoardState.PENDING if reading.one(f"SELECT 1 FROM tasks WHERE id = ? AND {_NOBODYS}", (task.id,)):
            return "no agent can do this task: create one with `artoo agent new NAME`, or cancel the task"
        case BoardState.PENDING if _is_nowhere(reading, task.id):
            return (
                f"no machine that works has its project {task.project}: name the directory in `projects` on one,"
                " or cancel it"
            )
        case _:
            return ""


def _recently(reading: Reading) -> dict[str, Value]:
    return {"since": reading.steady_us - seconds_us(SEEN_SECONDS), "quote": '"'}


def _is_nowhere(reading: Reading, task_id: str) -> bool:
    query = f"SELECT 1 FROM tasks WHERE id = :id AND {_NOWHERE}"
    return reading.one(query, {"id": task_id, **_recently(reading)}) is not None


def _stood_in_the_way(reading: Reading, task_id: str) -> str:
    row = reading.one(
        "SELECT reason FROM transitions WHERE board_task = ? AND after = 'blocked' ORDER BY position DESC LIMIT 1",
        (task_id,),
    )
    why = "" if row is None else " ".join(str(row["reason"]).split())
    return f" ({shortened(why, LONGEST_QUESTION)})" if why else ""


def _stopped(reading: Reading, assignee: str | None) -> str:
    row = reading.one("SELECT stopped FROM agents WHERE name = ?", (assignee or "",))
    return "" if row is None else str(row["stopped"])


def _why_in_review(reading: Reading, task: BoardTask, agents: list[Mover], policies: Policies) -> str:
    if task.reviewer == OPERATOR:
        return "its review is left to you"
    submitter = next((agent for agent in agents if agent.name == task.assignee), None)
    if submitter is not None and not review_wanted(reading, policies, submitter, task):
        return ""
    second = demanded(reading, policies, task)
    if any(_may_review(policies, task, agent, second) for agent in agents if agent.name != task.assignee):
        return ""
    return "no agent that may review it is there"


def _may_review(policies: Policies, task: BoardTask, agent: Mover, second: bool) -> bool:
    try:
        check_reviewer(policies, task, agent, demanded=second)
    except ActorRefused:
        return False
    return True
