"""Define long subtasks: one part of six files, one a turn by the right tool in a sound place.

The model keeps to its tool and place until something makes it change: it notices by itself now and then, its
attempt ends, or R7 writes to it (samples in flight). Half of the jobs print something new with each failure, so
that the executor's rule of ten idle turns does not end them.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace

from artoo.contracts.conversation import ModelTurn
from artoo.contracts.envelope import Envelope
from artoo.contracts.execution import CallStatus, ExecutionResult
from artoo.contracts.plan import SubTask
from artoo.contracts.solution import Directive
from artoo.contracts.steering import CourseDirective
from artoo.control.hyperparameters import Hyperparameters
from artoo.loops.fast import progress
from artoo.ports.tools import ToolSpec
from lab.laws import Arm, Law
from lab.minds import Choice, Minds, turn_of
from lab.running import run_job
from lab.world import IO_ERROR, PLACES, Job, Part, World, draw, job_of, kind_of

FILES = 6
LONG = World(parts=1, chained=0.0, big=0.0, hopeless=0.0, foresight=0.35, skill=0.5, broken=0.35)
NOTICES = 0.04
"""Chance, each turn, that the model leaves a way that does not work by itself."""
PATIENCE = 30
"""Turns without a file after which it says that it is done, and is not."""
BUDGETS = (40, 80, 120, 200)
NORMAL = Hyperparameters(time_budget_ms=1_800_000)
"""The time of the effort `normal`."""
_NEVER = 10_000_000


@dataclass(frozen=True, slots=True)
class Flown:
    """One long job: model calls until all files were there (0: never), and in all; words of R7 in flight.

    `fresh`: each failure prints something new.
    """

    number: int
    done_at: int
    calls: int
    directives: int
    fresh: bool


@dataclass(slots=True)
class _Way:
    """The state of an executor: its present way, the turns in vain, and R7's word that it has not yet read."""

    choice: Choice
    idle: int = 0
    word: Directive | None = None


class LongMinds(Minds):
    """The models of one long job."""

    def __init__(self, world: World, job: Job, seed: int, notices: float = NOTICES) -> None:
        super().__init__(world, job, seed)
        self._notices = notices
        self._ways: dict[str, _Way] = {}
        self._used: list[str] = []
        self._turns = 0
        self.done_at = self.directives = 0
        self.fresh = draw(seed, job.name, "fresh") < 0.5

    @property
    def part(self) -> Part:
        """Return the only part."""
        return self.job.parts[0]

    def tap(self, envelope: Envelope) -> None:
        """See Minds; a subtask brings its way, an attempt that failed is a word like R7's."""
        super().tap(envelope)
        match envelope.payload:
            case SubTask() as subtask:
                words = subtask.intent.split()
                tool = subtask.preferred_tool or words[3]
                self._ways[subtask.subtask_id] = _Way(Choice(tool, int(words[5].rpartition("t")[2])))
                self._used.append(tool)
            case CourseDirective() as course:
                self.directives += 1
                self._ways[course.subtask_id].word = course.directive
            case ExecutionResult() as result:
                self._ways[result.subtask_id].word = Directive.CHANGE_APPROACH
            case _:
                return

    def _subtask(self, part: Part, choice: Choice, piece: list[str]) -> dict[str, object]:
        wanted = [{"text": name, "check": {"check": "file_exists", "path": name}} for name in piece]
        return {**super()._subtask(part, choice, piece), "success_criteria": wanted}

    def turn(self, subtask_id: str, offered: Mapping[str, ToolSpec]) -> ModelTurn:
        """Go on as before, or otherwise; end where all is there, or patience is at its end."""
        way, key = self._ways[subtask_id], (self.seed, self.job.name, self._turns)
        self._turns += 1
        if self.made.issuperset(self.part.criteria) or way.idle >= PATIENCE:
            way.idle = 0
            return ModelTurn(text="It is done.")
        word, way.word = way.word, None
        if word is not None and draw(*key, "heed") < self.world.heed:
            way.choice = self._otherwise(way.choice, word, tuple(offered), *key)
        elif way.idle > 2 and draw(*key, "notices") < self._notices:
            own = Directive.CHANGE_PATH if draw(*key, "which") < 0.5 else Directive.CHANGE_APPROACH
            way.choice = self._otherwise(way.choice, own, tuple(offered), *key)
        step = {"tool": way.choice.tool, "input": self.job.place(self.part, way.choice.place)}
        return turn_of({**step, "more": {"how": str(self._turns)}}, offered, self.calls, delivers=False)

    def _otherwise(self, choice: Choice, word: Directive, offered: tuple[str, ...], *key: object) -> Choice:
        """Return what the model makes of a word.

        One to refine says nothing of tool or place: it looks at either.
        """
        if word is Directive.REFINE:
            word = Directive.CHANGE_PATH if draw(*key, "either") < 0.5 else Directive.CHANGE_APPROACH
        if word is Directive.CHANGE_PATH:
            return replace(choice, place=(choice.place + 1 + int(draw(*key, "place") * (PLACES - 1))) % PLACES)
        own = [tool for tool in self.part.guesses if tool in offered]
        new = [tool for tool in own if tool not in self._used] or own
        tool = new[0] if new else choice.tool
        self._used.append(tool)
        return replace(choice, tool=tool)

    def use(self, subtask_id: str, name: str, place: str) -> dict[str, object]:
        """Return the next file, or why not."""
        way, key = self._ways[subtask_id], (self.seed, self.job.name, "use", self._turns)
        left = [each for each in self.part.criteria if each not in self.made]
        new = f" {self._turns}" if self.fresh else ""
        way.idle += 1
        if not self.part.sound[int(place.rpartition("t")[2])]:
            return {"status": CallStatus.ERROR, "exit_code": 1, "error_output": f"{IO_ERROR}{new}"}
        near = kind_of(name, self.world.names) == kind_of(self.part.right, self.world.names)
        able = name == self.part.right or (near and len(left) > FILES - 2)
        if left and able and draw(*key, "skill") < self.world.skill:
            self.made.add(left[0])
            way.idle = 0
            if len(left) == 1:
                self.done_at = self.calls
            return {"output": f"made {left[0]}", "exit_code": 0, "changes": (left[0],)}
        return {"status": CallStatus.ERROR, "exit_code": 1, "error_output": f"assertion failed{new}"}


@dataclass(frozen=True, slots=True)
class Flights:
    """The implementation of `experiment.Cell` for long jobs under the law, with samples in flight or without."""

    samples: bool
    notices: float = NOTICES

    async def run(self, seed: int, numbers: range) -> list[object]:
        """Return a Flown for each job."""
        with _sampled(self.samples):
            return [await self._fly(seed, number) for number in numbers]

    async def _fly(self, seed: int, number: int) -> Flown:
        made = job_of(LONG, seed, number, parts=1)
        job = replace(made, parts=tuple(replace(part, size=FILES) for part in made.parts))
        minds = LongMinds(LONG, job, seed, self.notices)
        trace = await run_job(LONG, job, Arm("the law", Law, NORMAL), seed, minds=minds)
        return Flown(number, minds.done_at, trace.calls, minds.directives, minds.fresh)


@contextmanager
def _sampled(samples: bool) -> Generator[None]:
    """Run without samples: at no turn, and at no time. Cells of a process run one after the other."""
    before = progress._TURNS, progress._SECONDS  # pyright: ignore[reportPrivateUsage]
    try:
        if not samples:
            progress._TURNS, progress._SECONDS = _NEVER, float(_NEVER)  # pyright: ignore[reportPrivateUsage]
        yield
    finally:
        progress._TURNS, progress._SECONDS = before  # pyright: ignore[reportPrivateUsage]
