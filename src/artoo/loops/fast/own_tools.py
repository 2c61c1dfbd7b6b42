"""The executor's tools `deliver`, `cannot`, `recall`, `update_plan` and `ask_person`, with their descriptions.

They end or shape an attempt, and change nothing on the machine.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, cast

from pydantic import ValidationError

from artoo.contracts.conversation import OWN_TOOLS, ChecklistItem, ChecklistUpdated, ToolRequest
from artoo.contracts.envelope import Envelope
from artoo.contracts.execution import CallStatus, ToolCall
from artoo.contracts.steering import QuestionAsked
from artoo.loops.fast.calls import CallRecord
from artoo.loops.fast.inbox import Inbox
from artoo.ports.arguments import read_arguments
from artoo.ports.bus import Port
from artoo.ports.tools import INTEGER, Arguments, Parameter, ToolSpec

# The priority of these tools. They are described after the tools that do the work.
_LAST = 1_000

DELIVER = ToolSpec(
    "deliver",
    "end with the output of a call as the whole answer, word for word",
    (Parameter("call", "the number of the call; default: the newest", required=False, schema=INTEGER),),
    _LAST,
)
CANNOT = ToolSpec(
    "cannot",
    "end because the subtask cannot be done, and leave it undone",
    (Parameter("reason", "why, and what you looked at"),),
    _LAST,
)
RECALL = ToolSpec(
    "recall",
    "show again what an earlier call put out",
    (Parameter("call", "the number of the call", schema=INTEGER),),
    _LAST,
)
UPDATE_PLAN = ToolSpec(
    "update_plan",
    "show the user a checklist of a long piece of work; give all items each time",
    (
        Parameter(
            "items",
            "the items in order",
            clear=True,
            schema={
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {
                        "text": {"type": "string"},
                        "status": {"type": "string", "enum": ["pending", "in_progress", "done"]},
                    },
                    "required": ["text", "status"],
                },
            },
        ),
    ),
    _LAST,
)
ASK_PERSON = ToolSpec(
    "ask_person",
    "ask the user something that only they can tell; never for permission: tools ask for that themselves",
    (Parameter("question", "the question, in the language of the request"),),
    _LAST,
)

_OWN = {spec.name: spec for spec in (DELIVER, CANNOT, RECALL, UPDATE_PLAN, ASK_PERSON)}
assert _OWN.keys() == OWN_TOOLS


def in_text(specs: tuple[ToolSpec, ...]) -> tuple[ToolSpec, ...]:
    """Return the tools that the text dialect calls like any other tool. `deliver` and `cannot` are left out,
    because the text dialect has its own forms to end an attempt."""
    return tuple(spec for spec in specs if spec not in (DELIVER, CANNOT))


@dataclass(frozen=True, slots=True)
class AttemptEnd:
    """The end of an attempt, which is the executor's result for the validator. `put_out_by`: the number of the call
    whose output is the answer, word for word.

    `circled`: the attempt repeated itself without progress.
    """

    status: Literal["completed", "cannot", "uncertain", "failed"]
    output: str
    put_out_by: int | None = None
    circled: bool = False


@dataclass(slots=True)
class OwnTools:
    """The executor's own tools for one subtask. `asks`: true if a user can answer. `recall`: true if outputs were
    left out of the conversation.

    `one_program`: true if an attempt consists of a single program. If that program fails, the attempt ends, so that
    the validator can ask for another way.
    """

    port: Port
    inbox: Inbox
    record: CallRecord
    subtask_id: str
    asks: bool
    one_program: bool
    recall: bool = False

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        """Return the tools that the model may call now."""
        return (
            *(DELIVER, CANNOT, UPDATE_PLAN),
            *([ASK_PERSON] if self.asks else []),
            *([RECALL] if self.recall else []),
        )

    def has(self, request: ToolRequest) -> bool:
        """Return whether a request names one of these tools."""
        return request.name in _OWN

    async def use(self, request: ToolRequest, cause: Envelope) -> str | AttemptEnd:
        """Use a tool. Return the text for the model, or the end of the attempt."""
        arguments, problem = read_arguments(_OWN[request.name], request.arguments)
        if problem:
            return problem
        match request.name:
            case "cannot":
                return AttemptEnd("cannot", str(arguments["reason"]))
            case "deliver":
                return self._deliver(cast("int", arguments.get("call", len(self.record.calls))))
            case "recall":
                return self._recall(cast("int", arguments["call"]))
            case "update_plan":
                return self._update_plan(arguments, cause)
            case _:
                return await self._ask(str(arguments["question"]), cause)

    def _deliver(self, number: int) -> str | AttemptEnd:
        call = self.record.call(number)
        if call is None:
            return f"There is no call {number}. Make a call first, or answer in your own words."
        answer = self.record.answer_of(call)
        if answer:
            return AttemptEnd("completed", answer, number)
        if call.withheld_by is not None:
            # the model must not get another turn in which to work around a refusal
            return AttemptEnd("uncertain", call.reason or "")
        if self.one_program:
            return self._program_ended(call)
        why = "printed nothing" if call.status is CallStatus.OK else "did not end well"
        return f"Call {number} {why}, so it is no answer. Go on."

    def _program_ended(self, call: ToolCall) -> AttemptEnd:
        said = call.output.strip()
        if said and call.says_no and self.record.came_before(call):
            return AttemptEnd("cannot", said)  # the model repeated a program whose output explains the failure
        why = "printed nothing" if call.status is CallStatus.OK else "did not end well"
        return AttemptEnd("uncertain", f"the program {why}")

    def _recall(self, number: int) -> str:
        call = self.record.call(number)
        return f"There is no call {number}." if call is None else self.record.text(number, call)

    def _update_plan(self, arguments: Arguments, cause: Envelope) -> str:
        items = arguments["items"]
        try:
            checklist = tuple(map(ChecklistItem.model_validate, items if isinstance(items, list) else ()))
        except ValidationError as error:
            return f"update_plan: {error.errors()[0]['msg']}"
        self.port.publish(ChecklistUpdated(subtask_id=self.subtask_id, items=checklist), cause=cause)
        return "The user sees it."

    async def _ask(self, question: str, cause: Envelope) -> str:
        asked = QuestionAsked(subtask_id=self.subtask_id, question=question)
        answer = await self.inbox.answer_to(self.port.publish(asked, cause=cause))
        return f"The user answers: {answer}" if answer else "Nobody has answered. Decide yourself, and say so."
