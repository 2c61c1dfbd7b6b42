"""Coordinates of the SVG diagram of the three loops, and of the decision plane."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from artoo.contracts.roles import Role
from artoo.contracts.solution import Directive
from artoo.tasklog.state import Stage, TaskState
from artoo.web.names import named
from artoo.web.reasons import law_of
from artoo.words.catalogue import Catalogue
from artoo.words.names import role_name


@dataclass(frozen=True, slots=True)
class Node:
    """A box for a role. `deed` is the role's activity in a word, and `state` is now, done or later."""

    x: int
    y: int
    width: int
    name: str
    deed: str
    state: str

    @property
    def middle(self) -> float:
        """Return the x coordinate of the centre, where the name is drawn."""
        return self.x + self.width / 2


@dataclass(frozen=True, slots=True)
class Arrow:
    """An arrow for messages. `lively`: if true, messages flow now. `style`: data, back or slow."""

    path: str
    lively: bool
    style: str = "data"


@dataclass(frozen=True, slots=True)
class Frame:
    """The outline of a loop, with the loop's name at `name_x`."""

    x: int
    y: int
    width: int
    height: int
    name: str
    name_x: int


@dataclass(frozen=True, slots=True)
class Mark:
    """A mark for one subtask of the round, in the fast loop. `state` is the stage of the subtask."""

    x: int
    y: int
    state: str


@dataclass(frozen=True, slots=True)
class Drawing:
    """A diagram of the loops, with the positions of its texts: `back` is for the directive, `memory` for the slow
    loop, and `measured` for the numbers of the latest decided round."""

    width: int
    height: int
    nodes: tuple[Node, ...]
    arrows: tuple[Arrow, ...]
    frames: tuple[Frame, ...]
    marks: tuple[Mark, ...]
    back: tuple[int, int]
    memory: tuple[int, int]
    measured: tuple[int, int]


HIGH = 50
_WIDE_ROW = 118
_ORDER = (
    *(Role.USER, Role.PERCEIVER, Role.PLANNER, Role.DISPATCHER),
    *(Role.EXECUTOR, Role.AGENT_VALIDATOR, Role.META_VALIDATOR, Role.SOLVER),
)
_WIDE_X = (8, 138, 270, 398, 546, 676, 826, 962)
_WIDTH = 100


def wide(state: TaskState, words: Catalogue) -> Drawing:
    """Draw the loops from left to right, for a wide window."""
    spots = dict(zip(_ORDER, ((x, _WIDE_ROW) for x in _WIDE_X), strict=True))
    middle, end = _WIDE_ROW + HIGH // 2, _WIDE_ROW + HIGH
    turn, again = state.turn, state.turn is Role.PLANNER and bool(state.rounds)
    line = [
        Arrow(f"M{left + _WIDTH} {middle} H{right - 7}", turn is role and not again)
        for (left, right), role in zip(pairwise(_WIDE_X), _ORDER[1:], strict=True)
    ]
    solver, planner, validator, executor = (_WIDE_X[place] + _WIDTH // 2 for place in (7, 2, 5, 4))
    corrected = (
        turn is Role.EXECUTOR
        and bool(state.rounds)
        and any(one.lessons for one in state.rounds[-1].subtasks.values())
    )
    arrows = (
        *line,
        Arrow(f"M{validator} {_WIDE_ROW} V{_WIDE_ROW - 22} H{executor} V{_WIDE_ROW - 7}", corrected, "back"),
        Arrow(f"M{solver} {end} V{end + 40} H{planner} V{end + 7}", again, "back"),
        Arrow(f"M{solver + 22} {end} V{end + 96} H{(solver + planner) // 2 + 92}", False, "slow"),
        Arrow(f"M{(solver + planner) // 2 - 92} {end + 96} H{planner - 22} V{end + 7}", False, "slow"),
    )
    frames = (
        Frame(530, 62, 262, 122, words("fast loop: do, check, correct"), 542),
        Frame(256, 20, 820, 210, words("medium loop: plan, do, measure, decide"), 268),
    )
    return Drawing(
        1100, 300, _nodes(state, words, spots, _WIDTH), arrows, frames, _marks(state, 546, end + 5),
        ((solver + planner) // 2, end + 44), ((solver + planner) // 2, end + 101),
        (_WIDE_X[6] + 118, _WIDE_ROW - 14),
    )  # fmt: skip


def narrow(state: TaskState, words: Catalogue) -> Drawing:
    """Draw the loops from top to bottom, for a phone."""
    left, right, width = 20, 176, 128
    spots = {
        Role.USER: (left, 8),
        Role.PERCEIVER: (right, 8),
        Role.PLANNER: (left, 110),
        Role.DISPATCHER: (right, 110),
        Role.EXECUTOR: (left, 216),
        Role.AGENT_VALIDATOR: (right, 216),
        Role.META_VALIDATOR: (left, 318),
        Role.SOLVER: (right, 318),
    }
    turn, again = state.turn, state.turn is Role.PLANNER and bool(state.rounds)
    across = [
        Arrow(f"M{left + width} {y + 25} H{right - 7}", turn is role)
        for y, role in (
            *((8, Role.PERCEIVER), (110, Role.DISPATCHER)),
            *((216, Role.AGENT_VALIDATOR), (318, Role.SOLVER)),
        )
    ]
    down = [
        Arrow(f"M240 {y + HIGH} V{y + gap} H36 V{below - 7}", turn is role and not again)
        for y, gap, below, role in (
            (8, 64, 110, Role.PLANNER),
            (110, 66, 216, Role.EXECUTOR),
            (216, 76, 318, Role.META_VALIDATOR),
        )
    ]
    arrows = (*across, *down, Arrow("M240 368 V384 H10 V135 H13", again, "back"))
    frames = (
        Frame(16, 188, 304, 88, words("fast loop: do, check, correct"), 52),
        Frame(4, 82, 326, 330, words("medium loop: plan, do, measure, decide"), 52),
    )
    nodes, marks = _nodes(state, words, spots, width), _marks(state, left, 267)
    return Drawing(334, 452, nodes, arrows, frames, marks, (170, 402), (167, 436), (186, 308))


_MOST_MARKS = 23


def _marks(state: TaskState, x: int, y: int) -> tuple[Mark, ...]:
    """Place the round's subtasks in a row, with running subtasks first, so that parallel work is easy to see."""
    order = (Stage.WORKING, Stage.CHECKING, Stage.FAILED, Stage.MATCHED, Stage.WAITING)
    subtasks = state.rounds[-1].subtasks.values() if state.rounds else ()
    stages = sorted((one.stage for one in subtasks), key=order.index)
    return tuple(Mark(x + 10 * place, y, stage) for place, stage in enumerate(stages[:_MOST_MARKS]))


def _nodes(state: TaskState, words: Catalogue, spots: dict[Role, tuple[int, int]], width: int) -> tuple[Node, ...]:
    now = _ORDER.index(state.turn) if state.turn in _ORDER else None
    ended = state.result is not None
    return tuple(
        Node(
            *spots[role],
            width,
            role_name(role.value, words),
            words(named("deed", role.value)),
            "now" if place == now else "done" if ended or (now is not None and place < now) else "later",
        )
        for place, role in enumerate(_ORDER)
    )


@dataclass(frozen=True, slots=True)
class Region:
    """A rectangle of the decision plane in which the same decision is taken."""

    x: float
    y: float
    width: float
    height: float
    name: str
    kind: str
    short: str

    @property
    def middle(self) -> tuple[float, float]:
        """Return the position of the short name."""
        return self.x + self.width / 2, self.y + self.height / 2 + 4


@dataclass(frozen=True, slots=True)
class Point:
    """A decided round as a point of the decision plane. `kind`: good, going or bad."""

    x: float
    y: float
    number: int
    kind: str


@dataclass(frozen=True, slots=True)
class Plane:
    """The decision plane, with P to the right and D upwards, both from 0 to 1, on 300 × 240 units from (44, 30)."""

    regions: tuple[Region, ...]
    points: tuple[Point, ...]
    path: str
    rho: float
    delta: float


LEFT, TOP, ACROSS, UP = 44.0, 30.0, 300.0, 240.0
_APART = 0.045
"""The horizontal shift (in P) of rounds at the same point, so that earlier rounds stay visible."""


def plane(state: TaskState, words: Catalogue) -> Plane:
    """Build the decision plane, with its regions and a point for each decided round."""
    law = law_of(state)
    rho, delta = LEFT + law.rho * ACROSS, TOP + (1 - law.delta) * UP
    regions = (
        Region(
            LEFT,
            TOP,
            rho - LEFT,
            delta - TOP,
            words("right approach, resisted by the environment: fix, or take another path"),
            "world",
            words("fix, or go around"),
        ),
        Region(
            rho,
            TOP,
            LEFT + ACROSS - rho,
            delta - TOP,
            words("wrong approach: change the approach or the tools"),
            "approach",
            words("another approach"),
        ),
        Region(
            LEFT,
            delta,
            ACROSS,
            TOP + UP - delta,
            words("near enough to the goal: accept"),
            "success",
            words("accept"),
        ),
    )
    seen: dict[tuple[float, float], int] = {}
    points: list[Point] = []
    for each in state.rounds:
        if each.decided is None:
            continue
        loss = each.decided.loss
        spot = (round(loss.P, 2), round(loss.D, 2))
        aside = seen[spot] = seen.get(spot, -1) + 1
        across = min(1.0, max(0.0, loss.P)) + (-aside if loss.P > 0.5 else aside) * _APART
        kind = "good" if each.decided.directive in (Directive.ACCEPT, Directive.SUCCESS) else "going"
        if each.decided.directive is Directive.ABANDON:
            kind = "bad"
        points.append(Point(LEFT + across * ACROSS, TOP + (1 - min(1.0, loss.D)) * UP, each.number, kind))
    path = " ".join(f"{'M' if place == 0 else 'L'}{one.x:.1f} {one.y:.1f}" for place, one in enumerate(points))
    return Plane(regions, tuple(points), path, rho, delta)
