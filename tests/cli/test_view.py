"""What the display knows after each message, and what it looks like at 80 columns."""

from __future__ import annotations

import io
from dataclasses import dataclass

import pytest
from cli_standin import STORIES, envelope
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console

from artoo.cli.display.display import Display, Progress, display_for
from artoo.cli.display.live import LiveDisplay
from artoo.cli.display.plain import PlainDisplay
from artoo.cli.display.sanitize import one_line, printable
from artoo.cli.display.side_channel import Fetch
from artoo.cli.display.symbols import cost_line, round_line
from artoo.cli.display.task_state import TaskView, activity_of
from artoo.contracts.confirmation import ConfirmationAnswer, ConfirmationRequest, Consent
from artoo.contracts.execution import (
    CallEffects,
    CriterionJudged,
    SubTaskOutcome,
    ToolCall,
    ToolCalled,
    ToolStarted,
)
from artoo.contracts.plan import PlanRefused
from artoo.contracts.roles import Role
from artoo.contracts.solution import Cost, Decided, Halt, RoleFailure, StoppedBy
from artoo.ports.printing import Printed
from artoo.tasklog.state import Call, Round, Stage, Subtask
from artoo.words.catalogue import ENGLISH
from artoo.words.shown import duration


@dataclass
class Clock:
    """Seconds that pass when told to."""

    now: float = 0.0

    def __call__(self) -> float:
        return self.now


def played(story: str, messages: int | None = None, clock: Clock | None = None) -> TaskView:
    """The view after the first `messages` of a story."""
    view = TaskView(clock=clock or Clock())
    for number, (role, payload) in enumerate(STORIES[story]("the request")):
        if messages is None or number < messages:
            view.hear(envelope(number, role, payload))
    return view


def frame(view: TaskView, *, width: int = 80, height: int = 24) -> list[str]:
    """The lines of one frame of the live display."""
    console = Console(file=io.StringIO(), width=width, height=height, force_terminal=True, color_system=None)
    with console.capture() as captured:
        console.print(LiveDisplay(console, view).draw())
    return captured.get().rstrip("\n").split("\n")


def test_a_story_of_two_rounds_is_followed() -> None:
    """Rounds, stages, verdicts, the decision, files and costs are those of the messages."""
    view = played("chinese")
    assert view.text.language == "zh"
    first, second = view.state.rounds
    assert [subtask.stage for subtask in first.subtasks.values()] == [Stage.MATCHED, Stage.FAILED]
    assert first.subtasks["1.2"].reason == "没有写入任何文件"
    assert activity_of(first.subtasks["1.2"]) == "[error] shell: cat 报告.md"
    assert (first.subtasks["1.1"].passed, first.subtasks["1.1"].judged) == (1, 1)
    assert first.decided is not None
    assert first.decided.loss.D == 0.5
    assert len(second.carried) == 1
    assert view.state.result is not None
    assert [one.path for one in view.state.result.changes.changes] == ["/workspace/报告.md"]
    cost = view.cost
    assert (cost.llm_calls, cost.tool_calls, cost.prompt_tokens, cost.cached_tokens) == (4, 3, 400, 200)


def test_a_correction_starts_another_attempt() -> None:
    """A corrected subtask is at its second attempt, with the reason."""
    view = played("gaps", messages=8)
    subtask = view.state.rounds[0].subtasks["1.1"]
    assert (subtask.attempt, subtask.reason) == (2, "the header is missing")


@pytest.mark.parametrize(("story", "width"), [("chinese", 40), ("crowd", 80)])
def test_every_frame_fits_the_terminal(story: str, width: int) -> None:
    """At no moment is a line wider than the terminal or the display higher than it, wide characters included."""
    for messages in range(1, 60, 2):
        lines = frame(played(story, messages), width=width)
        assert len(lines) <= 24
        assert max(cell_len(line) for line in lines) <= width
        assert cell_len(lines[-1].rstrip()) <= width - len("^C"), "an echoed Ctrl-C would begin a new row"


def test_a_frame_reads_well() -> None:
    """A running second round shows what the first one led to, the subtask's tool, and what was spent."""
    clock = Clock()
    view = played("chinese", messages=23, clock=clock)
    clock.now = 75.0
    lines = frame(view)
    assert lines[0] == "the request"
    assert lines[1].startswith("  第 1 轮  1/2  → 方法不对：换一种方法")
    assert lines[2] == "  第 2 轮 · 1 个子任务 · 沿用 1 个"
    assert "写入报告" in lines[3]
    assert "1 min 15 s" in lines[3]
    assert lines[-1].startswith("  3 次模型调用 · 330 个 token (50% 命中缓存)")


def test_trouble_questions_and_stopping_are_shown() -> None:
    """A refused plan, a failed role, a question and its answer, and a halt each change what is shown."""
    view = TaskView(clock=Clock())
    view.begin("do it")
    told = [
        (Role.PLANNER, PlanRefused(reasons=("no criteria",), round=1), "plan refused: no criteria"),
        (
            Role.EXECUTOR,
            RoleFailure(role=Role.EXECUTOR, stopped_by=StoppedBy.INTERNAL, reason="lost"),
            "executor: lost",
        ),
        (Role.GATE, ConfirmationRequest(digest="d", title="delete x"), "waiting for your answer: delete x"),
        (Role.SOLVER, Halt(stopped_by=StoppedBy.TIME, reason="time"), "Ctrl-C again exits at once"),
    ]
    for number, (role, payload, shown) in enumerate(told):
        view.hear(envelope(number, role, payload))
        assert any(shown in line for line in frame(view)), shown
    view.hear(envelope(9, Role.USER, ConfirmationAnswer(digest="d", consent=Consent.NO, by="a person")))
    assert not any("delete x" in line for line in frame(view))


def test_nobody_is_waited_for_where_nobody_can_answer() -> None:
    """Without a terminal the question is on the stream, and answered with no at once."""
    view = TaskView(clock=Clock(), answered=False)
    view.begin("do it")
    view.hear(envelope(1, Role.GATE, ConfirmationRequest(digest="d", title="delete x")))
    assert not any("waiting for" in line for line in frame(view)) and "d" in view.state.questions


def test_the_download_of_the_model_is_shown() -> None:
    """While the local model is fetched, both displays say how far it is."""
    view = TaskView(clock=Clock())
    view.begin("do it")
    stream = io.StringIO()
    plain = PlainDisplay(stream, view)
    view.fetch.changed = plain.update
    for done in range(1_001):
        view.fetch(done * 1_000_000, 1_000_000_000, "fetching from the hub")
        if done == 345:
            assert any("345 / 1,000 MB" in line for line in frame(view))
    assert stream.getvalue().splitlines()[3] == "artoo: fetching from the hub: 30% of 1,000 MB"
    assert len(stream.getvalue().splitlines()) == 10
    assert not any("MB" in line for line in frame(view))
    assert Fetch().share == 0.0


def test_plain_lines_say_everything_once() -> None:
    """However often the plain display is updated, each settled fact is one line."""
    view, stream = TaskView(clock=Clock()), io.StringIO()
    display = PlainDisplay(stream, view)
    for number, (role, payload) in enumerate(STORIES["gaps"]("the request")):
        view.hear(envelope(number, role, payload))
        display.update()
        display.update()
    assert stream.getvalue().splitlines() == [
        "artoo: round 1: 1 subtask",
        "artoo: round 1 [1] Write the table: corrected: the header is missing",
        "artoo: round 1 [1] Write the table: ✓ its criteria hold",
        "artoo: round 1: → good enough, with gaps",
    ]


def test_a_success_in_which_nothing_failed_has_no_gaps() -> None:
    """A poem that nobody can check has no gap: nothing has confirmed it, and that is what is said."""
    (decided,) = (payload for _, payload in STORIES["gaps"]("the request") if isinstance(payload, Decided))
    assert round_line(decided, ENGLISH, numbers=False) == "→ good enough, with gaps"
    well = decided.model_copy(update={"logical_failures": 0})
    assert round_line(well, ENGLISH, numbers=False) == "→ answered, not confirmed"


def test_the_same_command_once_more_is_no_new_line() -> None:
    """A second call that looks like the first says nothing new; it does after something else was said."""
    view, stream = TaskView(clock=Clock()), io.StringIO()
    display = PlainDisplay(stream, view)
    view.state.rounds.append(Round(1, {"s": Subtask("s", 1, "count")}))
    for number, target in enumerate(("a", "a", "b", "a")):
        view.state.begin_call(Call(str(number), "s", "shell", f"wc {target}"))
        display.update()
    said = [line.rpartition(" ")[2] for line in stream.getvalue().splitlines() if "wc" in line]
    assert said == ["a", "b", "a"]


def test_a_long_request_does_not_hide_what_became_of_it() -> None:
    """The name of a subtask gives way, and not the end of its line."""
    view, stream = TaskView(clock=Clock()), io.StringIO()
    failed = SubTaskOutcome(subtask_id="s", parent_task_id="t", status="failed", failure_reason="no file")
    subtask = Subtask("s", 1, "count the words " * 20, stage=Stage.FAILED, outcome=failed)
    view.state.rounds.append(Round(1, {"s": subtask}))
    PlainDisplay(stream, view).update()
    line = stream.getvalue().splitlines()[-1]
    assert line.endswith("no file") and "count the words" in line


def test_what_nothing_judged_is_not_said_to_hold() -> None:
    """A part without criteria of its own is judged with the whole: of itself it is known that it has an answer."""
    view, stream = TaskView(clock=Clock()), io.StringIO()
    display = PlainDisplay(stream, view)
    unjudged = (each for each in STORIES["gaps"]("the request") if not isinstance(each[1], CriterionJudged))
    for number, (role, payload) in enumerate(unjudged):
        view.hear(envelope(number, role, payload))
        display.update()
    ending = next(line for line in stream.getvalue().splitlines() if "[1]" in line and "corrected" not in line)
    assert ending.endswith(" an answer")


class FakeTerminal(io.StringIO):
    """A stream that says that it is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("wanted", "environ", "kind"),
    [
        (Progress.AUTO, {"TERM": "xterm"}, LiveDisplay),
        (Progress.AUTO, {"TERM": "xterm", "NO_COLOR": "1"}, PlainDisplay),
        (Progress.LIVE, {"TERM": "xterm", "NO_COLOR": "1"}, LiveDisplay),
        (Progress.LIVE, {"TERM": "dumb"}, PlainDisplay),
        (Progress.PLAIN, {"TERM": "xterm"}, PlainDisplay),
        (Progress.NONE, {"TERM": "xterm"}, Display),
    ],
)
def test_the_display_fits_the_terminal(wanted: Progress, environ: dict[str, str], kind: type) -> None:
    """Live only where redrawing is possible, and wanted or not spoken against."""
    assert type(display_for(wanted, FakeTerminal(), TaskView(), environ)) is kind


def test_a_pipe_is_never_live() -> None:
    """A stream that is no terminal gets lines, whatever was asked for."""
    assert isinstance(display_for(Progress.LIVE, io.StringIO(), TaskView(), {"TERM": "xterm"}), PlainDisplay)


@given(st.text())
def test_printable_text_commands_no_terminal(text: str) -> None:
    """Nothing that leaves `printable` can move a cursor, ring a bell or turn the direction of writing."""
    shown = printable(text)
    assert not any(character < " " and character not in "\n\t" for character in shown)
    assert not set(shown) & set("\x7f\x9b\u202e\u2066\ufeff")
    assert "\n" not in one_line(text)


def test_numbers_read_naturally() -> None:
    """Minutes and shares are written as people write them."""
    assert [duration(ms) for ms in (400, 9_960, 59_499, 60_000, 185_000, 7_500_000)] == [
        "0.4 s",
        "10 s",
        "59 s",
        "1 min 00 s",
        "3 min 05 s",
        "2 h 05 min",
    ]
    cost = Cost(
        llm_calls=1, prompt_tokens=900, cached_tokens=450, completion_tokens=100, tool_calls=2, elapsed_ms=1_500
    )
    assert cost_line(cost, ENGLISH, rounds=1) == (
        "1 round · 1 model call · 1,000 tokens (50% cached) · 2 tool calls · 1.5 s"
    )


def test_language_is_that_of_the_request() -> None:
    """As artoo's result tells it: a Chinese name makes no request Chinese, nor does Japanese."""
    for request in ("请 count", "count", "Translate 你好 to English please", "東京の天気を教えて"):
        view = TaskView(clock=Clock())
        view.begin(request)
        assert (view.text.language == "zh") == (request == "请 count")


def test_the_command_that_runs_is_shown_with_its_last_lines() -> None:
    """From its start to its end, since when, and below the subtasks what it wrote last; then the next step."""
    clock = Clock()
    view = TaskView(clock=clock)
    for number, (role, payload) in enumerate(list(STORIES["gaps"]("the request"))[:6]):
        view.hear(envelope(number, role, payload))
    assert view.state.round is not None
    [subtask_id] = view.state.round.subtasks
    started = ToolStarted(
        subtask_id=subtask_id, attempt=1, act="a", tool="shell", input="sleep 30", effects=CallEffects.STAGED
    )
    view.hear(envelope(7, Role.EXECUTOR, started))
    view.hear_printed(Printed(view.state.task_id, "of another call", ("0 of 3",)))
    view.hear_printed(Printed(view.state.task_id, "a", ("1 of 3", "2 of\x1b 3")))
    clock.now = 12.0
    lines = frame(view)
    assert any("→ shell: sleep 30" in line and "12 s" in line for line in lines)
    assert [line.strip(" │|") for line in lines if "of 3" in line] == ["1 of 3"]
    assert any("2 of\\x1b 3" in line for line in lines)
    done = ToolCall(tool="shell", identity=("shell",), input="sleep 30")
    view.hear(envelope(8, Role.EXECUTOR, ToolCalled(subtask_id=subtask_id, attempt=1, act="a", call=done)))
    lines = frame(view)
    assert not any("→ shell" in line or "of 3" in line for line in lines)


async def test_what_is_said_in_a_pause_stays() -> None:
    """After a question the display begins below it, and does not go up over it."""
    stream = io.StringIO()
    console = Console(file=stream, force_terminal=True, width=80, height=24)
    display = LiveDisplay(console, TaskView())
    with display.shown():
        async with display.paused():
            stream.write("May it?\n")
            place = stream.tell()
        after = stream.getvalue()[place:]
    assert "\x1b[1A" not in after
    assert "\x1b[2K" not in after.partition("0.0 s")[0]
