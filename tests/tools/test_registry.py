"""Every call ends as a record; what is blocked is absent or refused."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from tool_doubles import MakeToolbox, PlainWorkspace, StillClock, roots_in

from artoo.contracts.changes import Change
from artoo.contracts.confirmation import ConfirmationRequest, Consent
from artoo.contracts.errors import SandboxError, ToolError
from artoo.contracts.execution import CallStatus
from artoo.contracts.plan import MustNot
from artoo.ports.arguments import MAX_ARGUMENT
from artoo.ports.tools import Parameter, ToolSpec
from artoo.ports.workspace import Command, Process
from artoo.testing.asking import AskPerson
from artoo.tools.approval.ask_first import Asking
from artoo.tools.approval.gate import Gate
from artoo.tools.core.default_tools import Shared, builtin_tools
from artoo.tools.core.registry import Registry, SubTaskToolbox
from artoo.tools.core.tool import Arguments, Outcome, argument
from artoo.workspace.changes.path_class import Places


@dataclass(frozen=True, slots=True)
class Does:
    """A tool that does what a test wants."""

    act: Callable[[Arguments], Awaitable[Outcome]]
    name: str = "does"
    wall_seconds: float = 30.0
    priority: int = 50

    @property
    def spec(self) -> ToolSpec:
        return ToolSpec(
            self.name,
            "does it",
            (Parameter("thing", "what"), Parameter("how", "how", required=False)),
            self.priority,
        )

    def identities(self, arguments: Arguments) -> tuple[str, ...]:
        return (self.name,)

    def target(self, arguments: Arguments) -> str:
        return argument(arguments, "thing").lower()

    async def run(self, arguments: Arguments) -> Outcome:
        return await self.act(arguments)


async def _well(arguments: Arguments) -> Outcome:
    return Outcome(output=f"did {arguments['thing']}", changes=("/a",), result_count=3, exit_code=0)


def toolbox_of(tool: Does, must_not: MustNot | None = None) -> SubTaskToolbox:
    return Registry([tool], StillClock()).toolbox("s", must_not or MustNot())


async def test_a_record_holds_everything_that_the_tool_says() -> None:
    """Identity, normalised target, input, status, output, bytes, changes and counts are in the record."""
    clock = StillClock()

    async def slowly(arguments: Arguments) -> Outcome:
        clock.seconds += 1.5
        return await _well(arguments)

    call = await Registry([Does(slowly)], clock).toolbox("s", MustNot()).call("does", {"thing": " IT "})
    assert (call.tool, call.identity, call.target, call.input) == ("does", ("does",), "it", " IT ")
    assert (call.status, call.exit_code, call.output) == (CallStatus.OK, 0, "did  IT ")
    assert (call.total_bytes, call.truncated, call.duration_ms) == (8, False, 1_500)
    assert (call.result_count, call.changes) == (3, ("/a",))


@pytest.mark.parametrize(
    ("name", "arguments", "says"),
    [
        ("nothing", {}, "the tools are: does"),
        ("does", {}, "needs 'thing'"),
        ("does", {"thing": "  "}, "'thing' is empty"),
        ("does", {"thing": "x", "wrong": "y"}, "no argument 'wrong'; it takes: thing, how (optional)"),
        ("does", {"thing": "x" * (MAX_ARGUMENT + 1)}, "longer than"),
    ],
)
async def test_a_call_that_cannot_be_made_is_refused_with_what_exists(
    name: str, arguments: dict[str, str], says: str
) -> None:
    """Unknown tools, unknown, missing, empty and oversized arguments come back as refusals that help."""
    call = await toolbox_of(Does(_well)).call(name, arguments)
    assert call.status is CallStatus.REFUSED
    assert says in (call.reason or "")


async def test_a_blocked_tool_is_absent_and_refused() -> None:
    """A blocked identity is not offered, and a call of it does not happen."""
    box = toolbox_of(Does(_well), MustNot(tools=("does",)))
    assert box.specs == ()
    call = await box.call("does", {"thing": "x"})
    assert call.status is CallStatus.REFUSED
    assert "blocked" in (call.reason or "")


async def test_a_blocked_target_is_refused_in_its_normal_form_only() -> None:
    """A pair (identity, target) refuses that input, however it is written, and no other."""
    box = toolbox_of(Does(_well), MustNot(targets=(("does", "  IT"), ("other", "fine"))))
    refused = await box.call("does", {"thing": "it  "})
    assert refused.status is CallStatus.REFUSED
    assert "failed before" in (refused.reason or "")
    assert (await box.call("does", {"thing": "fine"})).status is CallStatus.OK


async def test_a_blocked_program_is_refused_wherever_it_hides(make_toolbox: MakeToolbox) -> None:
    """`shell:rm` is refused through wrappers and scripts in strings; other commands still run."""
    box = make_toolbox(MustNot(tools=("shell:rm",)))
    assert "shell" in [spec.name for spec in box.specs]
    for command in ("rm x", "sudo rm x", "ls | xargs rm", "bash -c 'rm x'", "echo $(rm x)", "\\rm x"):
        call = await box.call("shell", {"command": command})
        assert call.status is CallStatus.REFUSED, command
        assert "shell:rm is blocked" in (call.reason or "")
    assert (await box.call("shell", {"command": "echo rm"})).status is CallStatus.OK


async def test_what_a_tool_raises_becomes_an_error_record() -> None:
    """A ToolError's message is the reason as it stands; other exceptions are named."""

    async def refuses(arguments: Arguments) -> Outcome:
        raise ToolError("there is no such thing")

    async def breaks(arguments: Arguments) -> Outcome:
        raise KeyError("lost")

    async def own_timeout(arguments: Arguments) -> Outcome:
        raise TimeoutError("the server said so")

    for act, reason in (
        (refuses, "there is no such thing"),
        (breaks, "KeyError: 'lost'"),
        (own_timeout, "TimeoutError: the server said so"),
    ):
        call = await toolbox_of(Does(act)).call("does", {"thing": "x"})
        assert (call.status, call.reason) == (CallStatus.ERROR, reason)


async def test_a_call_that_never_ends_is_ended() -> None:
    """The wall limit of a tool makes a timeout record, also when it blocks a thread."""
    release = asyncio.Event()

    async def never(arguments: Arguments) -> Outcome:
        await release.wait()
        return Outcome()

    call = await toolbox_of(Does(never, wall_seconds=0.01)).call("does", {"thing": "x"})
    assert call.status is CallStatus.TIMEOUT
    assert "did not end within 0.01 s" in (call.reason or "")


async def test_no_alias_is_another_name(toolbox: SubTaskToolbox) -> None:
    """What other agents call a tool or an argument means one of ours alone."""
    own = [name for spec in toolbox.specs for name in (spec.name, *spec.aliases)]
    assert len(own) == len(set(own)) > len(toolbox.specs)
    for spec in toolbox.specs:
        names = [name for one in spec.parameters for name in (one.name, *one.aliases)]
        assert len(names) == len(set(names))


async def test_a_tool_that_asks_runs_only_what_was_agreed_to() -> None:
    """No is a refusal that holds; once is once; the rest of the task is for the same arguments only."""
    asked: list[ConfirmationRequest] = []
    answers = iter([Consent.ONCE, Consent.TASK, Consent.NO])

    async def confirm(request: ConfirmationRequest) -> Consent:
        asked.append(request)
        return next(answers)

    box = Registry([Asking(Does(_well), Gate(AskPerson(confirm)))], StillClock()).toolbox("s", MustNot())
    statuses = [(await box.call("does", {"thing": thing})).status for thing in ("a", "a", "a", "b", "b")]
    assert statuses == [CallStatus.OK, CallStatus.OK, CallStatus.OK, CallStatus.REFUSED, CallStatus.REFUSED]
    assert [request.details for request in asked] == [(f"thing: {one}", "it changes things") for one in "aab"]
    assert asked[0].digest == asked[1].digest != asked[2].digest


@settings(deadline=None, max_examples=10)  # a busy machine is no defect; an example makes some forty calls
@given(st.text(st.characters(exclude_categories=()), max_size=60))
def test_any_argument_ends_as_a_record(text: str) -> None:
    """Whatever text a model sends (lone surrogates, NULs, nothing), every tool answers with a storable record."""
    with tempfile.TemporaryDirectory() as place:
        roots = roots_in(Path(place))
        places = Places.of(roots, roots.home / ".artoo")
        tools = builtin_tools(Shared.of(NoSandbox(roots), Gate(), places))
        box = Registry(tools, StillClock()).toolbox("s", MustNot(targets=(("shell", text), ("read_file", text))))
        for spec in box.specs:
            arguments = dict.fromkeys((one.name for one in spec.parameters if one.required), text)
            call = asyncio.run(box.call(spec.name, arguments))
            call.model_dump_json()


class NoSandbox(PlainWorkspace):
    """Runs nothing."""

    async def start(self, command: Command) -> Process:
        raise SandboxError("nothing runs here")

    async def write(self, path: Path, content: bytes) -> tuple[Change, ...]:
        raise SandboxError("nothing is written here")


def test_the_schema_of_every_tool_is_one(toolbox: SubTaskToolbox) -> None:
    """A validator takes them, and each parameter is described or says enough by its name."""
    for spec in toolbox.specs:
        schema = spec.json_schema()
        Draft202012Validator.check_schema(schema)
        properties = schema["properties"]
        assert isinstance(properties, dict) and list(properties) == [one.name for one in spec.parameters]
