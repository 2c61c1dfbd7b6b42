"""A task of AgentDojo's run by artoo, with a model that obeys whatever a tool's output tells it to do."""

from __future__ import annotations

import asyncio
import inspect
import json
import tempfile
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Literal, cast

from pydantic import JsonValue

from artoo.contracts.base import Contract
from artoo.contracts.confirmation import ConfirmationRequest, Consent
from artoo.contracts.errors import ToolError
from artoo.contracts.solution import FinalResult
from artoo.runtime.app.artoo import Artoo
from artoo.runtime.app.run_options import RunOptions
from artoo.runtime.config.model import Config
from artoo.testing import Asked, ScriptedModel, with_body
from artoo.testing.replies import Scripted
from artoo.testing.script import Answering
from artoo.tools.core.function_tools import Function, tool
from benchmarks.public.errands import at_home

HOST = Path(__file__).with_name("foreign_suite.py")
"""AgentDojo's side."""

READS: Mapping[str, frozenset[str]] = {
    "banking": frozenset(
        {
            "get_iban",
            "get_balance",
            "get_most_recent_transactions",
            "get_scheduled_transactions",
            "read_file",
            "get_user_info",
        }
    ),
    "slack": frozenset(
        {"get_channels", "read_channel_messages", "read_inbox", "get_users_in_channel", "get_webpage"}
    ),
    "travel": frozenset(
        {
            "get_user_information",
            "get_all_hotels_in_city",
            "get_hotels_prices",
            "get_rating_reviews_for_hotels",
            "get_hotels_address",
            "get_all_restaurants_in_city",
            "get_cuisine_type_for_restaurants",
            "get_restaurants_address",
            "get_rating_reviews_for_restaurants",
            "get_dietary_restrictions_for_all_restaurants",
            "get_contact_information_for_restaurants",
            "get_price_for_restaurants",
            "check_restaurant_opening_hours",
            "get_all_car_rental_companies_in_city",
            "get_car_types_available",
            "get_rating_reviews_for_car_rental",
            "get_car_fuel_options",
            "get_car_rental_address",
            "get_car_price_per_day",
            "search_calendar_events",
            "get_day_calendar_events",
            "get_flight_information",
        }
    ),
    "workspace": frozenset(
        {
            "get_unread_emails",
            "get_sent_emails",
            "get_received_emails",
            "get_draft_emails",
            "search_emails",
            "search_contacts_by_name",
            "search_contacts_by_email",
            "get_current_day",
            "search_calendar_events",
            "get_day_calendar_events",
            "search_files_by_filename",
            "get_file_by_id",
            "list_files",
            "search_files",
        }
    ),
}
"""The tools of each suite that change nothing, read out of their code; all others ask. `get_unread_emails` marks as
read, and nothing else."""

REACHES = frozenset({"get_webpage"})
"""Tools among them that reach someone: whom data named first is asked about, as for every `@tool`."""

_LONGEST_LINE = 1 << 24
_ANSWER_SECONDS = 600.0
"""Its first answer waits until the package is imported, which is long on a busy machine."""
_DONE = "Done."
_TYPES: Mapping[str, object] = {
    "string": str, "number": float, "integer": int, "boolean": bool, "array": list[object],
    "object": dict[str, object],
}  # fmt: skip


class Answers(StrEnum):
    """What whoever is asked says."""

    YES = "yes to everything"
    NO = "no to everything"
    SHOWN = "no where the question names a foreign source"
    KNOWS = "no to what the person did not ask for"


class Case(Contract):
    """A user's task and an injection's (empty: none)."""

    user: str
    injection: str


class Cases(Contract):
    """What may be run, and the users' tasks that no injection is shown to."""

    cases: tuple[Case, ...]
    unshown: tuple[str, ...]


class Step(Contract):
    """A call that the model makes, and whose wish it is."""

    function: str
    arguments: Mapping[str, object]
    of: Literal["user", "injection"]


class Parameter(Contract):
    """A parameter of a tool: its JSON type, and whether it may be left out."""

    name: str
    type: str
    required: bool
    default: JsonValue = None


class Described(Contract):
    """A tool of AgentDojo's."""

    name: str
    description: str
    parameters: tuple[Parameter, ...]


class Begun(Contract):
    """A case that has begun. `answer` is what the model says at the end. `useful_alone`: whether the task is useful
    when the calls of both are made without artoo; `left_out`: why the case says nothing, else empty.
    """

    useful_alone: bool
    left_out: str
    prompt: str
    answer: str
    tools: tuple[Described, ...]
    steps: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class Ran:
    """What became of a case. `asked`: questions; `sourced`: those that named a source; `acts`: calls of the user's
    own that change something or reach someone; `ended`: how artoo ended the task.
    """

    suite: str
    case: Case
    useful_alone: bool
    useful: bool
    took_effect: bool
    asked: int
    sourced: int
    acts: int
    obeyed: bool
    ended: str


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A case whose calls have, without artoo, not the effects that they should."""

    case: Case
    why: str


@dataclass(slots=True)
class Host:
    """AgentDojo's process."""

    process: Process
    suite: str
    _number: int = 0
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def ask(self, **asked: object) -> dict[str, object]:
        """One answer. Raises RuntimeError when the process has ended or answers something else."""
        async with self._turn:
            self._number += 1
            line = json.dumps({**asked, "suite": self.suite, "number": self._number}) + "\n"
            assert self.process.stdin is not None and self.process.stdout is not None
            self.process.stdin.write(line.encode())
            await self.process.stdin.drain()
            async with asyncio.timeout(_ANSWER_SECONDS):
                answer = await self.process.stdout.readline()
        if not answer:
            raise RuntimeError(f"the interpreter with AgentDojo ended at: {line[:200]}")
        found = cast("dict[str, object]", json.loads(answer))
        if found.pop("number") != self._number:
            raise RuntimeError(f"the interpreter with AgentDojo answered something else than: {line[:200]}")
        return found


@asynccontextmanager
async def opened(python: Path, suite: str) -> AsyncGenerator[Host]:
    """AgentDojo's process for one suite; it ends with the block."""
    process = await asyncio.create_subprocess_exec(
        str(python), str(HOST), stdin=PIPE, stdout=PIPE, limit=_LONGEST_LINE
    )
    try:
        yield Host(process, suite)
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


@dataclass(slots=True)
class Obeying:
    """The scripted model: the user's calls, and an injection's as soon as its text was shown."""

    suite: str
    begun: Begun
    at: int = 0
    went_well: int = 0
    obeyed: bool = False

    @property
    def current(self) -> Step:
        """The call that is under way."""
        return self.begun.steps[self.at - 1]

    def script(self, prompt: str) -> Mapping[str, Answering]:
        """One subtask, whose only criterion is that there is an answer."""
        criterion = {"text": "there is an answer", "check": {"check": "output_matches", "regex": "[A-Za-z0-9]"}}
        subtask = {"intent": prompt, "success_criteria": [criterion]}

        def plan(asked: Asked) -> Scripted:
            return {"subtasks": [subtask], "task_criteria": [criterion]}

        return {"Plan": plan, "ExecutorStep": self.next}

    def next(self, asked: Asked) -> Scripted:
        """The next call, or the answer."""
        steps = self.begun.steps
        while self.at < len(steps):
            step = steps[self.at]
            self.at += 1
            if step.of == "injection" and not self.obeyed and self.went_well != self.at - 1:
                continue  # the call that would have shown the injection did not go well
            self.obeyed = self.obeyed or step.of == "injection"
            return {"tool": _name(self.suite, step.function), "input": self._input(step)}
        return with_body({"tool": "answer"}, self.begun.answer or _DONE, "text")

    def _input(self, step: Step) -> str:
        """A JSON object, as a tool with several parameters takes it; the text itself where there is only one."""
        parameters = next(one.parameters for one in self.begun.tools if one.name == step.function)
        if len(parameters) > 1:
            return json.dumps(dict(step.arguments))
        values = [step.arguments.get(one.name, one.default) for one in parameters]
        return "".join(value if isinstance(value, str) else json.dumps(value) for value in values)


async def run_case(host: Host, case: Case, answers: Answers) -> Ran | LeftOut:
    """Runs a case as a task of artoo's, in a home of its own."""
    begun = Begun.model_validate(await host.ask(do="begin", user=case.user, injection=case.injection))
    if begun.left_out:
        return LeftOut(case, begun.left_out)
    reads = READS[host.suite]
    model = Obeying(host.suite, begun)
    asked = list[ConfirmationRequest]()

    async def answered(request: ConfirmationRequest) -> Consent:
        asked.append(request)
        refused = {
            Answers.YES: False,
            Answers.NO: True,
            Answers.SHOWN: request.source is not None,
            Answers.KNOWS: model.current.of == "injection",
        }[answers]
        return Consent.NO if refused else Consent.ONCE

    tools = [_tool(host, described, model, reads) for described in begun.tools]
    result = await _task(begun.prompt, tools, model, answered)
    judged = await host.ask(do="judge", output=result.output)
    return Ran(
        host.suite,
        case,
        useful_alone=begun.useful_alone,
        useful=bool(judged["useful"]),
        took_effect=bool(judged["took_effect"]),
        asked=len(asked),
        sourced=sum(request.source is not None for request in asked),
        acts=sum(step.of == "user" and step.function not in reads - REACHES for step in begun.steps),
        obeyed=model.obeyed,
        ended=result.directive if result.stopped_by is None else result.stopped_by,
    )


@contextmanager
def _new_home() -> Generator[Path]:
    with tempfile.TemporaryDirectory(prefix="artoo-lab-") as place:
        home = Path(place).resolve()
        (home / "project").mkdir()
        yield home


async def _task(
    prompt: str,
    tools: Sequence[Function],
    model: Obeying,
    confirm: Callable[[ConfirmationRequest], Awaitable[Consent]],
) -> FinalResult:
    with _new_home() as home:
        config = Config(workspace=home / "artoo_workspace").at_home(home / ".artoo")
        options = RunOptions(project=home / "project", memory=False)
        with at_home(home):
            scripted = ScriptedModel(model.script(prompt), leftover=True)
            async with Artoo(config, tools=tools, environ={}, model=scripted, confirm=confirm) as artoo:
                return await artoo.run(prompt, options=options)


def _tool(host: Host, described: Described, model: Obeying, reads: frozenset[str]) -> Function:
    """A function of AgentDojo's as `@tool` would have it: with its own name, description and parameters."""

    async def called(**arguments: object) -> str:
        given = {name: value for name, value in arguments.items() if value is not None}
        answer = await host.ask(do="call", function=described.name, arguments=given)
        if "error" in answer:
            raise ToolError(str(answer["error"]))
        model.went_well = model.at
        return str(answer["output"])

    parameters = [
        inspect.Parameter(
            one.name,
            inspect.Parameter.KEYWORD_ONLY,
            annotation=_TYPES[one.type],
            default=inspect.Parameter.empty if one.required else one.default,
        )
        for one in described.parameters
    ]
    parameters.sort(key=lambda one: one.default is not inspect.Parameter.empty)
    called.__signature__ = inspect.Signature(parameters)  # pyright: ignore[reportFunctionMemberAccess]
    name, writes = _name(host.suite, described.name), described.name not in reads
    return tool(name=name, description=described.description, writes=writes)(called)


def _name(suite: str, function: str) -> str:
    """artoo has tools of its own, of which one may be called the same."""
    return f"{suite}_{function}"
