"""Group 4: the decisive step of failed traces (Who&When), as facts and grounding see it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from pydantic import BaseModel, Field

from artoo.contracts.execution import OUTPUT_KEPT, CallStatus, ToolCall
from artoo.contracts.text import without_middle
from artoo.evidence.grounding import seen_in, ungrounded
from lab.experiment import Claim, Experiment, Finding, Outcome, PublicData, Rows, SizedCell, Table, no_cells
from lab.statistics import Estimate, mean_of
from lab.world import draw

BUILT, ASIDE = "the half that was looked at", "the half set aside"
PUBLISHED_STEP, PUBLISHED_AGENT = 0.142, 0.535
"""The best of Zhang et al. 2025 (arXiv 2505.00212), by models that read the whole trace."""
_TERMINALS = ("Computer_terminal", "ComputerTerminal")
_ENDED = re.compile(r"exitcode: (-?\d+)")
"""How a terminal of the frameworks begins what a program printed."""
_FENCED = re.compile(r"```.*?(```|$)", re.DOTALL)

ABOVE_CHANCE = Claim(
    "The first thing that stands against a trace by facts or grounding is its decisive step more often than a step "
    "drawn by lot.",
    "in the half set aside the interval of (hits − chance) reaches down to 0",
)
ABOVE_PUBLISHED = Claim(
    f"It is so more often than the best published method finds it ({100 * PUBLISHED_STEP:.1f} %).",
    f"in the half set aside it is so in {100 * PUBLISHED_STEP:.1f} % or less",
)
RIGHT_AGENT = Claim(
    f"It is the decisive agent's more often than the best published method says ({100 * PUBLISHED_AGENT:.1f} %).",
    f"in the half set aside it is so in {100 * PUBLISHED_AGENT:.1f} % or less",
    "withdrawn: no document says that code finds whose fault it was; only the step is claimed.",
)


class Said(BaseModel):
    """A message of a trace."""

    content: str
    role: str
    name: str = ""

    @property
    def speaker(self) -> str:
        """The agent, without what the framework adds."""
        return (self.name or self.role).partition(" ")[0]


class Trace(BaseModel):
    """A failed task with the step, counted from 0, that decided it, as people have labelled it."""

    question: str = ""
    history: list[Said] = Field(min_length=1)
    mistake_agent: str
    mistake_step: int


@dataclass(frozen=True, slots=True)
class Blamed:
    """`first`: the first step against which something stands, by each way of looking; None: none."""

    agent: str
    step: int
    speakers: tuple[str, ...]
    first: Mapping[str, int | None]


@dataclass(frozen=True, slots=True)
class Half:
    """Implements `experiment.SizedCell`."""

    traces: tuple[Trace, ...]

    @property
    def size(self) -> int:
        """Traces."""
        return len(self.traces)

    async def run(self, seed: int, numbers: range) -> list[object]:
        """A Blamed each."""
        return [blamed(self.traces[number]) for number in numbers]


def cells(data: Path) -> Mapping[str, SizedCell]:
    """Halves by file."""
    files = sorted(data.rglob("*.json"))
    traces = {str(file.relative_to(data)): Trace.model_validate_json(file.read_bytes()) for file in files}
    if not traces:
        raise ValueError(f"{data} holds no *.json in the form of Who&When")
    looked_at = {name for name in traces if draw("half", "who-and-when", name) < 0.5}
    return {
        BUILT: Half(tuple(trace for name, trace in traces.items() if name in looked_at)),
        ASIDE: Half(tuple(trace for name, trace in traces.items() if name not in looked_at)),
    }


def blamed(trace: Trace) -> Blamed:
    """The message before the first program that failed, the first with tokens from nowhere, the earlier of both."""
    failed = _first_failure(trace)
    floating = _first_floating(trace)
    found = [step for step in (failed, floating) if step is not None]
    return Blamed(
        agent=trace.mistake_agent,
        step=trace.mistake_step,
        speakers=tuple(said.speaker for said in trace.history),
        first={FACTS: failed, GROUNDING: floating, BOTH: min(found, default=None)},
    )


FACTS, GROUNDING, BOTH = "a program failed (facts)", "tokens from nowhere (grounding)", "whichever is first"


def _first_failure(trace: Trace) -> int | None:
    for step, said in enumerate(trace.history):
        if said.speaker in _TERMINALS and step and _failed(said.content):
            return step - 1
    return None


def _failed(content: str) -> bool:
    ended = _ENDED.match(content.lstrip())
    return ended is not None and ended[1] != "0"


def _first_floating(trace: Trace) -> int | None:
    """Code in fences is no claim, and the first message has seen nothing but the question."""
    calls, told = list[ToolCall](), [trace.question]
    for step, said in enumerate(trace.history):
        prose = _FENCED.sub(" ", said.content)
        if said.speaker in _TERMINALS:
            calls.append(_call(said))
        elif step and ungrounded(prose, seen_in(calls, told)):
            return step
        told.append(said.content)
    return None


def _call(said: Said) -> ToolCall:
    status = CallStatus.ERROR if _failed(said.content) else CallStatus.OK
    output = without_middle(said.content, OUTPUT_KEPT)
    return ToolCall(tool="shell", identity=("shell",), status=status, output=output, total_bytes=len(said.content))


def judge(rows: Rows) -> Outcome:
    """Claims are held against the half set aside."""
    halves = {name: cast("list[Blamed]", list(rows[name])) for name in (BUILT, ASIDE)}
    aside = halves[ASIDE]
    hits, agents = _hits(aside, BOTH), _agents(aside, BOTH)
    ahead = mean_of([float(each.first[BOTH] == each.step) - 1 / len(each.speakers) for each in aside])
    findings = (
        Finding(ABOVE_CHANCE, ahead.above, f"hits − chance: {ahead.text(1, 100)} points"),
        Finding(ABOVE_PUBLISHED, hits.value > PUBLISHED_STEP, f"{hits.text(1, 100)} %"),
        Finding(RIGHT_AGENT, agents.value > PUBLISHED_AGENT, f"{agents.text(1, 100)} %"),
    )
    return Outcome(findings, tuple(_table(name, found) for name, found in halves.items()))


def _hits(found: Sequence[Blamed], way: str) -> Estimate:
    return _share(found, lambda each: each.first[way] == each.step)


def _agents(found: Sequence[Blamed], way: str) -> Estimate:
    return _share(found, lambda each: _speaker(each, each.first[way]) == each.agent)


def _speaker(each: Blamed, step: int | None) -> str | None:
    return None if step is None else each.speakers[step]


def _share(found: Sequence[Blamed], said: Callable[[Blamed], bool]) -> Estimate:
    return mean_of([float(said(each)) for each in found])


def _table(name: str, found: Sequence[Blamed]) -> Table:
    rows = [
        (
            way,
            _share(found, lambda each, way=way: each.first[way] is not None).text(1, 100),
            _hits(found, way).text(1, 100),
            _agents(found, way).text(1, 100),
        )
        for way in (FACTS, GROUNDING, BOTH)
    ]
    chance = mean_of([1 / len(each.speakers) for each in found])
    by_lot = mean_of([each.speakers.count(each.agent) / len(each.speakers) for each in found])
    rows.append(("a step by lot", "100", chance.text(1, 100), by_lot.text(1, 100)))
    start, starter = _share(found, lambda each: each.step == 0), _share(found, lambda e: e.speakers[0] == e.agent)
    rows.append(("the first step", "100", start.text(1, 100), starter.text(1, 100)))
    columns = ("what is looked at", "says something, %", "the decisive step, %", "the decisive agent, %")
    return Table(
        f"{name.capitalize()}: {len(found)} traces", columns, tuple(rows), "Saying nothing counts as wrong."
    )


EXPERIMENT = Experiment(
    seeds=(20_261,),
    name="blame",
    title="The decisive step of others' failures",
    question="Is the first thing that code can hold against a failed trace the step that people blame?",
    claims=(ABOVE_CHANCE, ABOVE_PUBLISHED, RIGHT_AGENT),
    cells=no_cells,
    judge=judge,
    tasks=10_000,
    piece=50,
    real="`artoo.evidence.grounding`, and what a terminal says of how a program ended. The Auditor took no part: "
    "its rules hold artoo's stream of typed messages, which these traces have not got",
    simulated="nothing; recorded conversations of agents of other frameworks, labelled by people",
    unit="traces",
    data=PublicData(
        how="Clone https://github.com/mingyin1/Agents_Failure_Attribution (MIT) and give its folder `Who&When`.",
        cells=cells,
    ),
)
