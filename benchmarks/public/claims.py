"""Group 4: claimed successes of tau-bench's published trajectories, as artoo's facts and grounding see them."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from pydantic import BaseModel, Field

from artoo.contracts.execution import OUTPUT_KEPT, CallStatus, ExecutionResult, ToolCall
from artoo.contracts.text import without_middle
from artoo.evidence.facts import broken_act
from artoo.evidence.grounding import seen_in, ungrounded
from artoo.evidence.tokens import words_of
from lab.experiment import Claim, Experiment, Finding, Outcome, PublicData, Rows, SizedCell, Table, no_cells
from lab.statistics import Estimate, bootstrap, mean
from lab.world import draw

BUILT, ASIDE = "the half that was looked at", "the half set aside"
_STOP = "###STOP###"
"""How tau-bench's simulated customer says that they are content."""
_ERROR = "Error:"
"""How tau-bench's tools begin what went wrong."""
JUDGE = 0.65
"""The best AUROC of a judging model on such trajectories, as the project's aims quote it."""

ABOVE_CHANCE = Claim(
    "What stands against a claimed success by facts and grounding tells false claims from true ones.",
    "in the half set aside the interval of the AUROC reaches down to .5",
    "withdrawn: no document says so. What nothing decided is called unverified, whatever stands against it or not.",
)
ABOVE_JUDGES = Claim(
    f"It tells them apart better than the best judging model ({JUDGE}).",
    f"in the half set aside the AUROC is {JUDGE} or less",
    "withdrawn: no document compares facts with a judge; where no fact decides, a judge is asked.",
)
SPARING = Claim(
    "True successes are left alone: something stands against at most one in ten of them.",
    "in the half set aside something stands against more than 10 % of the true successes",
    "withdrawn: no document says how seldom. A token from nowhere is asked about before it refuses a result.",
)
BEYOND_WORDS = Claim(
    "It sees at least as much as a bag of words that has learnt from the other half.",
    "in the half set aside the whole interval of (facts − bag of words) is below 0",
    "withdrawn: no document says so. Code still decides nothing by words: that is a rule, and not a result.",
)


class _Function(BaseModel):
    name: str
    arguments: str = ""


class _Asked(BaseModel):
    id: str
    function: _Function


class Message(BaseModel):
    """A message of a trajectory, in OpenAI's form."""

    role: str
    content: str | None = None
    tool_calls: list[_Asked] | None = None
    tool_call_id: str | None = None


class Trajectory(BaseModel):
    """One conversation. `reward` 1: the database and what was said are as they should be."""

    task_id: int
    trial: int
    reward: float
    traj: list[Message] = Field(min_length=1)

    @property
    def claims_success(self) -> bool:
        """It ended because the customer was content: nobody was called for help, and no limit was met."""
        last = self.traj[-1]
        return last.role == "user" and _STOP in (last.content or "")


@dataclass(frozen=True, slots=True)
class Judged:
    """A claimed success. `floating`: tokens that stand nowhere, in all its answers; `broken`: its last act failed;
    `errors`: calls that failed. `words` are what the agent said.
    """

    task: str
    true: bool
    floating: int
    broken: bool
    errors: int
    answers: int
    words: tuple[str, ...]

    @property
    def against(self) -> float:
        """What stands against it: floating tokens, and a last act that failed."""
        return self.floating + self.broken


@dataclass(frozen=True, slots=True)
class Half:
    """Implements `experiment.SizedCell`: the claimed successes of half of the tasks."""

    trajectories: tuple[tuple[str, Trajectory], ...]

    @property
    def size(self) -> int:
        """Claimed successes."""
        return len(self.trajectories)

    async def run(self, seed: int, numbers: range) -> list[object]:
        """A Judged each."""
        return [judged(*self.trajectories[number]) for number in numbers]


def cells(data: Path) -> Mapping[str, SizedCell]:
    """Halves by task, so that no task is in both."""
    files = sorted(data.glob("*.json")) if data.is_dir() else [data]
    found = [
        (f"{file.stem} {each.task_id}", each)
        for file in files
        for each in map(Trajectory.model_validate, cast("list[object]", json.loads(file.read_bytes())))
        if each.claims_success
    ]
    if not found:
        raise ValueError(f"{data} has no claimed successes in tau-bench's form")
    looked_at = tuple(each for each in found if draw("half", "tau-bench", each[1].task_id) < 0.5)
    return {BUILT: Half(looked_at), ASIDE: Half(tuple(each for each in found if each not in looked_at))}


def judged(task: str, trajectory: Trajectory) -> Judged:
    """Each answer against what was seen up to it, and the whole against its last act."""
    calls, told = list[ToolCall](), list[str]()
    asked = dict[str, _Function]()
    floating, said = 0, list[str]()
    for message in trajectory.traj:
        text = message.content or ""
        if message.role == "tool":
            calls.append(_call(asked.get(message.tool_call_id or "", _Function(name="tool")), text))
        elif message.role == "assistant":
            asked |= {each.id: each.function for each in message.tool_calls or ()}
            floating += len(ungrounded(text, seen_in(calls, told))) if text else 0
            said.append(text)
        else:
            told.append(text)
    last = next((text for text in reversed(said) if text), "")
    result = ExecutionResult(subtask_id="1", attempt=1, status="completed", output=last, tool_calls=tuple(calls))
    return Judged(
        task=task,
        true=trajectory.reward >= 1,
        floating=floating,
        broken=bool(calls) and broken_act(result) is not None,
        errors=sum(call.status is CallStatus.ERROR for call in calls),
        answers=sum(bool(text) for text in said),
        words=tuple(words_of(" ".join(said))),
    )


def _call(function: _Function, output: str) -> ToolCall:
    failed = output.startswith(_ERROR)
    return ToolCall(
        tool=function.name,
        identity=(function.name,),
        input=function.arguments,
        status=CallStatus.ERROR if failed else CallStatus.OK,
        output=without_middle(output, OUTPUT_KEPT),
        total_bytes=len(output.encode()),
    )


def judge(rows: Rows) -> Outcome:
    """Claims are held against the half set aside; the other half is shown beside it."""
    halves = {name: cast("list[Judged]", list(rows[name])) for name in (BUILT, ASIDE)}
    bags = {BUILT: _bag(halves[ASIDE]), ASIDE: _bag(halves[BUILT])}
    scores: dict[str, Callable[[Judged, str], float]] = {
        "facts and grounding": lambda each, half: each.against,
        "floating tokens alone": lambda each, half: each.floating,
        "calls that failed": lambda each, half: each.errors,
        "number of answers": lambda each, half: each.answers,
        "a bag of words": lambda each, half: bags[half](each),
    }
    seen = {
        half: {name: [score(each, half) for each in found] for name, score in scores.items()}
        for half, found in halves.items()
    }
    aside = halves[ASIDE]
    ours, bag = seen[ASIDE]["facts and grounding"], seen[ASIDE]["a bag of words"]
    found = _estimate(aside, lambda at: _auroc(aside, ours, at))
    behind = _estimate(aside, lambda at: _auroc(aside, ours, at) - _auroc(aside, bag, at))
    flagged = _flagged(aside, true=True)
    findings = (
        Finding(ABOVE_CHANCE, found.low > 0.5, f"AUROC {found.text(2)}"),
        Finding(ABOVE_JUDGES, found.value > JUDGE, f"AUROC {found.text(2)}"),
        Finding(SPARING, flagged.value <= 0.1, f"{flagged.text(1, 100)} %"),
        Finding(BEYOND_WORDS, not behind.below, f"facts − bag of words: {behind.text(2)}"),
    )
    table = Table(
        "False claims of success told from true ones: AUROC",
        ("what is looked at", BUILT, ASIDE),
        tuple((name, *(_text(halves[half], seen[half][name]) for half in halves)) for name in scores),
        "With an AUROC of .5 a coin is as good. The bag of words is a naive Bayes that has learnt from the other "
        "half. Intervals by bootstrap over tasks.",
    )
    files = sorted({each.task.rpartition(" ")[0] for half in halves.values() for each in half})
    return Outcome(findings, (table, _samples(halves)), notes=(f"Read: {', '.join(files)}.",))


def _samples(halves: Mapping[str, list[Judged]]) -> Table:
    rows = [
        (
            half,
            f"{len(found)}",
            f"{len({each.task for each in found})}",
            f"{sum(not each.true for each in found)}",
            _flagged(found, true=False).text(1, 100),
            _flagged(found, true=True).text(1, 100),
        )
        for half, found in halves.items()
    ]
    columns = ("", "claimed successes", "tasks", "false", "something against false ones, %", "against true ones, %")
    return Table("Samples", columns, tuple(rows))


def _text(found: list[Judged], scores: list[float]) -> str:
    return _estimate(found, lambda at: _auroc(found, scores, at)).text(2)


def _auroc(found: Sequence[Judged], scores: Sequence[float], at: Sequence[int]) -> float:
    false = [scores[number] for number in at if not found[number].true]
    true = [scores[number] for number in at if found[number].true]
    return auroc(false, true) if false and true else 0.5


def _flagged(found: Sequence[Judged], *, true: bool) -> Estimate:
    kind = [each for each in found if each.true is true]
    flags = [float(each.against > 0) for each in kind]
    return _estimate(kind, lambda at: mean(flags, at))


def _estimate(found: Sequence[Judged], statistic: Callable[[Sequence[int]], float]) -> Estimate:
    """Tasks are drawn again, with all their trials."""
    by_task = dict[str, list[int]]()
    for number, each in enumerate(found):
        by_task.setdefault(each.task, []).append(number)
    tasks = list(by_task.values())
    return bootstrap(len(tasks), lambda drawn: statistic([number for task in drawn for number in tasks[task]]))


def _bag(learnt: Sequence[Judged]) -> Callable[[Judged], float]:
    """Naive Bayes over the words that were said (Laplace): how much more likely in a false claim."""
    kinds = {true: [set(each.words) for each in learnt if each.true is true] for true in (True, False)}
    counts = {true: Counter(word for words in found for word in words) for true, found in kinds.items()}

    def share(word: str, *, true: bool) -> float:
        return (counts[true][word] + 1) / (len(kinds[true]) + 2)

    words = counts[True] | counts[False]
    known = {word: math.log(share(word, true=False) / share(word, true=True)) for word in words}
    return lambda each: sum(known.get(word, 0.0) for word in set(each.words))


EXPERIMENT = Experiment(
    seeds=(20_261,),
    name="claims",
    title="Claimed successes of others",
    question="Of an agent's claims to have done what was asked, do facts and grounding tell the false ones?",
    claims=(ABOVE_CHANCE, ABOVE_JUDGES, SPARING, BEYOND_WORDS),
    cells=no_cells,
    judge=judge,
    tasks=10_000,
    piece=100,
    real="`artoo.evidence.facts` (the last act) and `artoo.evidence.grounding` (tokens), as R4a uses them",
    simulated="nothing; recorded conversations of an agent with a simulated customer, judged by tau-bench",
    unit="claimed successes",
    data=PublicData(
        how="Clone https://github.com/sierra-research/tau-bench (MIT) and give `historical_trajectories`, or one "
        "file of it.",
        cells=cells,
    ),
)


def auroc(positive: Sequence[float], negative: Sequence[float]) -> float:
    """How often a positive scores above a negative one, ties by half (Mann–Whitney). Raises ValueError for none."""
    if not positive or not negative:
        raise ValueError("an AUROC needs both kinds")
    wins = sum((p > n) + (p == n) / 2 for p in positive for n in negative)
    return wins / (len(positive) * len(negative))
