"""Whole tasks in a few lines: a world on disk, a scripted model behind real HTTP, and what came of it.

script = {"Plan": plan(subtask("count", tool="shell")), "ExecutorStep": shell("wc -l < a.txt")}
ended = await world.play("How many lines has a.txt?", script)
assert ended.directive == "accept"
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TypeVar, cast

from artoo import Artoo, Config, RunOptions
from artoo.auditor.watch import Watch
from artoo.contracts.base import Contract
from artoo.contracts.envelope import Envelope
from artoo.contracts.events import ModelCalled
from artoo.contracts.execution import CriterionJudged, CriterionVerdict, SubTaskOutcome, ToolCall, ToolCalled
from artoo.contracts.plan import PlanRefused
from artoo.contracts.request import Turn
from artoo.contracts.routes import may_follow, may_publish
from artoo.contracts.solution import Decided, FinalResult, RoleFailure
from artoo.ports.clock import Clock
from artoo.ports.confirm import Confirm
from artoo.runtime.app.system import SystemClock
from artoo.testing import Asked, Reply, ScriptedServer, with_body
from artoo.testing.replies import Scripted
from artoo.words.result import result_words

P = TypeVar("P", bound=Contract)
Json = dict[str, object]
Answering = Callable[[Asked], Scripted]
Script = Mapping[str, Scripted | Sequence[Scripted] | Answering]
During = Callable[[Artoo, Envelope], Awaitable[None]]


# --- what a model says ------------------------------------------------------------------------------------------


def plan(*subtasks: Json, criteria: Sequence[Json | str] | None = None) -> Json:
    """A Plan; without criteria of its own a check decides: any answer but "unfinished" will do."""
    has_own = len(subtasks) == 1 and bool(subtasks[0]["success_criteria"])
    decided = [ANSWERED] if criteria is None and not has_own else list(criteria or ())
    return {"subtasks": list(subtasks), "task_criteria": decided}


def replan(*subtasks: Json) -> Json:
    """A Plan of a later round: the criteria of the first stand."""
    return plan(*subtasks, criteria=())


ANY_ANSWER = "there is an answer"


def subtask(intent: str, *criteria: Json | str, tool: str | None = None, sequence: int = 1) -> Json:
    """One subtask of a Plan."""
    return {"sequence": sequence, "intent": intent, "tool": tool, "success_criteria": list(criteria)}


def matches(regex: str, text: str = "") -> Json:
    """A verifiable criterion: the output matches."""
    check = {"check": "output_matches", "regex": regex}
    return {"text": text or f"the output matches {regex}", "mode": "verifiable", "check": check}


ANSWERED = matches(r"\A(?![\s\S]*unfinished)\s*\S", ANY_ANSWER)


def exists(path: str) -> Json:
    """A verifiable criterion: the file is there."""
    return {"text": f"{path} exists", "mode": "verifiable", "check": {"check": "file_exists", "path": path}}


def shell(command: str, *, final: bool = True) -> Reply:
    """A step that runs a command."""
    return with_body({"tool": "shell", "is_final": final}, command)


def python(code: str, *, final: bool = True) -> Reply:
    """A step that runs a script."""
    return with_body({"tool": "python", "is_final": final}, code, "python")


def read(path: str, *, final: bool = True) -> Json:
    """A step that reads a file."""
    return {"tool": "read_file", "input": path, "is_final": final}


def write(path: str, text: str, *, final: bool = True) -> Reply:
    """A step that makes a file."""
    return with_body({"tool": "write_file", "input": path, "is_final": final}, text, "text")


def says(text: str, *sources: int) -> Reply:
    """A step that answers in the executor's own words, resting on these calls."""
    return with_body({"tool": "answer", "sources": list(sources)}, text, "text")


def gives_up(why: str) -> Json:
    """A step that says that the subtask cannot be done."""
    return {"tool": "cannot", "input": why}


def judged(*verdicts: tuple[str, str], what_to_do: str = "") -> Json:
    """A ValidationReport: (`pass` or `fail`, quote) for each criterion."""
    numbered = [
        {"number": number, "quote": quote, "verdict": verdict}
        for number, (verdict, quote) in enumerate(verdicts, 1)
    ]
    return {"verdicts": numbered, "what_to_do": what_to_do}


def merged(answer: str, *verdicts: tuple[str, str], sources: Sequence[int] = (1, 2)) -> Reply:
    """A MergeReport: the answer, and (`pass` or `fail`, quote) for each criterion."""
    return with_body({"sources": list(sources), "verdicts": judged(*verdicts)["verdicts"]}, answer, "text")


def reply(text: str) -> Json:
    """A Plan that is an answer."""
    return {"reply": text}


def question(text: str) -> Json:
    """A Plan that asks the person back."""
    return {"question": text}


def moves(*suggestions: str) -> Json:
    """A FailureReport."""
    return {"next_moves": list(suggestions)}


def offered(asked: Asked) -> list[str]:
    """The names of the tools that a request offers for function calling."""
    tools = cast("list[dict[str, dict[str, str]]]", asked.body.get("tools", []))
    return [tool["function"]["name"] for tool in tools]


@dataclass(slots=True)
class Each:
    """Steps by subtask, for subtasks that run in parallel: a key is found in the subtask's intent."""

    queues: dict[str, deque[Scripted]]

    @classmethod
    def of(cls, **steps: Scripted | Sequence[Scripted]) -> Each:
        """Underscores in a key stand for spaces."""
        return cls({key.replace("_", " "): deque(_listed(entry)) for key, entry in steps.items()})

    def __call__(self, asked: Asked) -> Scripted:
        intent = asked.user.rpartition("Your subtask:\n")[2].partition("\n")[0]
        key = next(key for key in self.queues if key in intent)
        return self.queues[key].popleft()

    def check_used_up(self) -> None:
        """Complains about steps that were not asked for."""
        assert not any(self.queues.values()), f"unused steps: {self.queues}"


def _listed(entry: Scripted | Sequence[Scripted]) -> Sequence[Scripted]:
    return entry if isinstance(entry, list) else [cast(Scripted, entry)]


# --- what came of it --------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Ended:
    """A finished task: its result, its whole stream, and what the model was asked."""

    envelopes: list[Envelope]
    requests: list[Asked]

    @property
    def result(self) -> FinalResult:
        return cast(FinalResult, self.envelopes[-1].payload)

    @property
    def told(self) -> str:
        """The result as it is worded for a person."""
        return result_words(self.result.language).plain(self.result)

    @property
    def directive(self) -> str:
        return self.result.directive.value

    @property
    def contracts(self) -> list[str]:
        """The contracts that were asked for, in order."""
        return [call.contract for call in self.all(ModelCalled)]

    @property
    def directives(self) -> list[str]:
        """The macro-state of every round."""
        return [decided.directive.value for decided in self.all(Decided)]

    @property
    def calls(self) -> list[ToolCall]:
        return [called.call for called in self.all(ToolCalled)]

    @property
    def verdicts(self) -> list[CriterionVerdict]:
        return [verdict for outcome in self.all(SubTaskOutcome) for verdict in outcome.criteria_verdicts]

    def all(self, kind: type[P]) -> list[P]:
        """The payloads of one kind, in order."""
        return [envelope.payload for envelope in self.envelopes if isinstance(envelope.payload, kind)]

    def one(self, kind: type[P]) -> P:
        """The only payload of its kind."""
        (found,) = self.all(kind)
        return found

    def asked(self, contract: str) -> list[Asked]:
        """Every HTTP request for one contract."""
        return [asked for asked in self.requests if asked.contract == contract]


def assert_causal(envelopes: Sequence[Envelope]) -> None:
    """The stream is whole: every cause came before, every kind may follow its cause, every sender may say it,
    and it begins with the request and ends with the only FinalResult."""
    kinds: dict[str, str] = {}
    for envelope in envelopes:
        assert envelope.id not in kinds, f"two messages have the id {envelope.id}"
        cause = None if envelope.cause_id is None else kinds.get(envelope.cause_id)
        assert envelope.cause_id is None or cause, f"{envelope.kind} answers a message that was never seen"
        assert may_follow(envelope.kind, cause), f"{envelope.kind} may not follow {cause}"
        assert may_publish(envelope.sender, envelope.kind), f"{envelope.sender} may not say {envelope.kind}"
        kinds[envelope.id] = envelope.kind
    order = [envelope.kind for envelope in envelopes]
    assert order[:2] == ["TaskOpened", "UserRequest"]
    assert order[-1] == "FinalResult" and order.count("FinalResult") == 1
    assert len({envelope.task_id for envelope in envelopes}) == 1


def assert_innocent(envelopes: Sequence[Envelope]) -> None:
    """The Auditor accuses nobody: a run that is as it should be breaks none of its rules."""
    watch = Watch()
    found = [finding for envelope in envelopes for finding in watch.observe(envelope)]
    accused = [str(finding) for finding in found if finding.nature == "violation"]
    assert not accused, "\n".join(accused)


def story(envelopes: Sequence[Envelope]) -> str:
    """What happened, in a few lines, for whoever reads a failing test."""
    lines: list[str] = []
    for envelope in envelopes:
        match envelope.payload:
            case ToolCalled(call=call):
                lines.append(
                    f"call {call.status} {call.tool} {call.input!r} -> {call.output[:80]!r} {call.reason or ''}"
                )
            case CriterionJudged(verdict=verdict):
                lines.append(
                    f"{verdict.verdict} {verdict.criterion} ({verdict.failure_class}) {verdict.evidence[:150]}"
                )
            case Decided() as decided:
                lines.append(f"{decided.directive} {decided.loss} grad {decided.grad_l:.2f} {decided.reason}")
            case PlanRefused(reasons=reasons):
                lines.append(f"plan refused: {reasons}")
            case RoleFailure() as failure:
                lines.append(f"{failure.role} failed: {failure.reason} {failure.detail}")
            case FinalResult() as result:
                lines.append(f"{result.directive} {result.stopped_by}: {result.summary}")
            case _:
                continue
    return "\n".join(lines)


HANGS_AFTER = 20.0
"""Seconds after which a scenario that does not end is a failing test instead of a silent one."""

# --- the world --------------------------------------------------------------------------------------------------


class FastClock:
    """Real time that runs `speed` times as fast, for waits that nobody wants to sit through."""

    def __init__(self, speed: float = 40.0) -> None:
        self._speed = speed
        self._clock = SystemClock()

    def now(self) -> datetime:
        return self._clock.now()

    def monotonic(self) -> float:
        return self._clock.monotonic() * self._speed

    async def sleep(self, seconds: float) -> None:
        await self._clock.sleep(seconds / self._speed)


async def nothing(artoo: Artoo, envelope: Envelope) -> None:
    """Watches only."""


@dataclass(frozen=True, slots=True)
class World:
    """A home, a project and a workspace of their own."""

    home: Path
    project: Path
    workspace: Path
    settings: Json = field(default_factory=dict[str, object])

    def file(self, name: str, text: str) -> Path:
        """Makes a file in the project."""
        path = self.project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def config(self, **sections: object) -> Config:
        """The default configuration in this world; `sections` as in the file."""
        return Config.model_validate({"workspace": self.workspace, **sections}).at_home(self.home)

    def options(self, **more: object) -> RunOptions:
        """Options of a run in this world."""
        return RunOptions(project=self.project, **more)  # pyright: ignore[reportArgumentType]

    def artoo(
        self,
        base_url: str,
        *,
        config: Config | None = None,
        tools: Sequence[Callable[..., object]] = (),
        clock: Clock | None = None,
        confirm: Confirm | None = None,
    ) -> Artoo:
        """An Artoo that asks the server at `base_url`."""
        environ = {"OPENAI_BASE_URL": base_url, "OPENAI_MODEL": "scripted"}
        return Artoo(config or self.config(), environ=environ, tools=tools, clock=clock, confirm=confirm)

    async def play(
        self,
        request: str,
        script: Script | Answering,
        *,
        config: Config | None = None,
        options: RunOptions | None = None,
        history: Sequence[Turn] = (),
        tools: Sequence[Callable[..., object]] = (),
        clock: Clock | None = None,
        confirm: Confirm | None = None,
        refuse: Collection[str] = (),
        during: During = nothing,
    ) -> Ended:
        """Runs one task against the script, checks its stream, and complains about unused script."""
        envelopes: list[Envelope] = []
        try:
            async with (
                asyncio.timeout(HANGS_AFTER),
                ScriptedServer(script, refuse=refuse) as server,
                self.artoo(server.base_url, config=config, tools=tools, clock=clock, confirm=confirm) as artoo,
            ):
                stream = artoo.stream(request, history=history, options=options or self.options())
                async with aclosing(stream):
                    async for envelope in stream:
                        envelopes.append(envelope)
                        await during(artoo, envelope)
                assert artoo.bus.open_tasks == 0
            assert_causal(envelopes)
            assert_innocent(envelopes)
        except (AssertionError, TimeoutError) as error:
            error.add_note(story(envelopes))
            raise
        entries = cast("Script", script).values() if isinstance(script, Mapping) else ()
        for entry in entries:
            if isinstance(entry, Each):
                entry.check_used_up()
        return Ended(envelopes, server.player.requests)
