"""The live display of a running task, with its redraw rate and its numbers of visible rows.

It is redrawn in place, and erased at the end of the task.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Generator, Sequence
from contextlib import asynccontextmanager, contextmanager

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text as Line

from artoo.cli.display.display import Display
from artoo.cli.display.sanitize import one_line, printable
from artoo.cli.display.side_channel import MEGABYTE
from artoo.cli.display.symbols import ARROW, BAR, DOT, FAILED, MATCHED, SPINNER, WAITING, cost_line, round_line
from artoo.cli.display.task_state import TaskView, activity_of, command_of
from artoo.contracts.conversation import ChecklistItem
from artoo.contracts.solution import Decided
from artoo.tasklog.state import Round, Stage, Subtask
from artoo.words.shown import duration

FRAMES_PER_SECOND = 8
ECHOED = 3
"""Number of columns for `^C` and the cursor after it. The terminal itself prints `^C`."""
LINES_CHECKLIST = 5
LINES_PRINTED = 3
"""Number of last lines of output that are shown for each running command."""
WORDS_SHOWN = 4_000
"""Number of last characters of the model's text that are split into lines, eight times a second."""
ROWS_BESIDES_SUBTASKS = 6 + LINES_CHECKLIST + 2 * LINES_PRINTED
"""Number of lines for everything except subtasks: the request, past rounds, the phase, the cost, a hint, the
checklist and output."""


class LiveDisplay(Display):
    """A display on standard error that is drawn eight times a second and erased at the end."""

    def __init__(self, console: Console, view: TaskView) -> None:
        self._console = console
        self._view = view
        self._frame = 0
        self._next: asyncio.TimerHandle | None = None
        self._live: Live | None = None

    @contextmanager
    def shown(self) -> Generator[None]:
        """Show the display while the block runs (in the event loop). Always restore the terminal afterwards."""
        self._begin()
        try:
            yield
        finally:
            self._end()

    @asynccontextmanager
    async def paused(self) -> AsyncGenerator[None]:
        """Erase the display while the block runs. Draw it again afterwards."""
        if self._live is None:
            yield
            return
        self._end()
        try:
            yield
        finally:
            self._begin()

    def _begin(self) -> None:
        """Start a new `Live` object. Restarting the old one would erase text that was printed in between."""
        self._live = Live(
            console=self._console,
            auto_refresh=False,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
            vertical_overflow="crop",
            get_renderable=self.draw,
        )
        self._live.start()
        self._tick(self._live)

    def _end(self) -> None:
        live, self._live = self._live, None
        if self._next is not None:
            self._next.cancel()
        if live is not None:
            live.stop()

    def _tick(self, live: Live) -> None:
        """Draw one frame, and schedule the next one on the event loop. A thread is not used, because it could see a
        state that is changed only in part."""
        live.refresh()
        self._frame += 1
        self._next = asyncio.get_running_loop().call_later(1 / FRAMES_PER_SECOND, self._tick, live)

    def draw(self) -> RenderableType:
        """Return one frame. It has the request, a line for each past round, the subtasks of the present round, and
        the cost."""
        view, state = self._view, self._view.state
        present = view.rounds[-1] if view.rounds else None
        rows: list[RenderableType] = [_row(view.intent, "bold")]
        rows += [self._past(past) for past in view.rounds[:-1][-2:]]
        if present is not None:
            rows.append(self._subtasks(present))
            if present.decided is not None:
                rows.append(_row("  " + self._decided(present.decided), "cyan"))
        rows += [_row(f"  {self._checked(item)} {one_line(item.text)}") for item in _in_sight(state.checklist)]
        words = printable(state.words[-WORDS_SHOWN:].expandtabs())
        rows += [_row(f"    {line}", "dim") for line in words.splitlines()[-LINES_PRINTED:]]
        if view.trouble:
            rows.append(_row("  " + view.trouble, "yellow"))
        if view.fetch.running:
            rows.append(self._fetching())
        if view.question or view.phase:
            rows.append(self._phase())
        rows.append(_row("  " + cost_line(view.cost, view.text, rounds=0), "dim"))
        if view.stopping:
            rows.append(_row("  " + view.text("Ctrl-C again exits at once"), "dim"))
        last = rows[-1]
        if isinstance(last, Line):
            # The terminal prints ^C after the last row. If ^C began a new row, this row would remain when the
            # display is erased.
            last.truncate(max(1, self._console.width - ECHOED), overflow="ellipsis")
        return Group(*rows)

    def _past(self, past: Round) -> RenderableType:
        head = f"  {self._view.text('round {number}', number=past.number)}  {past.matched}/{len(past.subtasks)}"
        return _row(f"{head}  {self._decided(past.decided)}" if past.decided is not None else head, "dim")

    def _decided(self, decided: Decided) -> str:
        return round_line(decided, self._view.text, numbers=self._view.numbers)

    def _fetching(self) -> RenderableType:
        fetch = self._view.fetch
        row = Table.grid(padding=(0, 1))
        size = f"{fetch.done / MEGABYTE:,.0f} / {fetch.total / MEGABYTE:,.0f} MB"
        bar = ProgressBar(total=fetch.total, completed=fetch.done, width=20)
        row.add_row(Line(f"  {fetch.phase}", no_wrap=True, overflow="ellipsis"), bar, Line(size, no_wrap=True))
        return row

    def _phase(self) -> RenderableType:
        if self._view.question:
            return _row(f"  ? {self._view.question}", "bold yellow")
        return _row(f"  {self._spin()} {self._view.phase}  {self._waited(self._view.since)}", "cyan")

    def _waited(self, since: float) -> str:
        """Format the time that has passed since `since`. Return an empty text if it is less than a second."""
        elapsed = self._view.clock() - since
        return duration(elapsed * 1000, whole=True) if elapsed >= 1 else ""

    def _subtasks(self, present: Round) -> RenderableType:
        """Return a line for each subtask. If there is no room for all, running subtasks are chosen first."""
        text = self._view.text
        table = Table.grid(padding=(0, 1), expand=True)
        table.add_column(width=3, no_wrap=True)
        table.add_column(ratio=5, no_wrap=True, overflow="ellipsis")
        table.add_column(ratio=4, no_wrap=True, overflow="ellipsis")
        table.add_column(no_wrap=True, justify="right", min_width=7)
        room = max(3, self._console.height - ROWS_BESIDES_SUBTASKS - 2)
        # running subtasks are chosen first, but the chosen lines stay in the order of the plan
        ordered = sorted(present.subtasks.values(), key=lambda one: (not one.at_work, one.number))
        shown = sorted(ordered[:room], key=lambda one: one.number)
        for subtask in shown:
            table.add_row(*self._cells(subtask))
        printed = [line for subtask in shown for line in self._view.printed(subtask)[-LINES_PRINTED:]]
        head = f"  {text('round {number}', number=present.number)}{DOT}"
        head += text.count("{count} subtask", "{count} subtasks", len(present.subtasks))
        if present.carried:
            head += DOT + text("{count} carried over", count=len(present.carried))
        rows: list[RenderableType] = [_row(head), table]
        if len(ordered) > room:
            rows.append(_row("    " + text("and {count} more", count=len(ordered) - room), "dim"))
        rows += [_row(f"    {BAR} {line}", "dim") for line in printed[-LINES_PRINTED:]]
        return Group(*rows)

    def _cells(self, subtask: Subtask) -> tuple[Line, Line, Line, Line]:
        style = {Stage.MATCHED: "green", Stage.FAILED: "red", Stage.WAITING: "dim"}.get(subtask.stage, "")
        verdict = f"{subtask.passed}/{subtask.judged}" if subtask.judged else ""
        if subtask.at_work:
            verdict = f"{verdict} {self._waited(self._view.working_since(subtask))}".strip()
        return (
            Line(f"  {self._sign(subtask)}", style=style),
            Line(one_line(subtask.intent), style=style),
            Line(self._activity(subtask), style="dim" if subtask.running is None else ""),
            Line(verdict, style="dim"),
        )

    def _activity(self, subtask: Subtask) -> str:
        """Describe the current or the latest operation of a subtask, or the reason why the subtask failed."""
        text = self._view.text
        if subtask.stage is Stage.WAITING:
            return text("waiting")
        if subtask.stage is Stage.FAILED:
            return one_line(subtask.reason) or activity_of(subtask)
        if subtask.stage is Stage.MATCHED:
            return activity_of(subtask)
        if subtask.running is not None:
            doing = f"{ARROW} {command_of(subtask)}"
        elif subtask.stage is Stage.CHECKING:
            doing = text("checking")
        else:
            activity = activity_of(subtask)
            doing = DOT.join(filter(None, (text("choosing a step"), activity)))
        return f"{text('attempt {number}', number=subtask.attempt)}: {doing}" if subtask.attempt > 1 else doing

    def _sign(self, subtask: Subtask) -> str:
        known = {
            Stage.MATCHED: MATCHED,
            Stage.FAILED: FAILED,
            Stage.WAITING: WAITING,
        }
        return known.get(subtask.stage) or self._spin()

    def _checked(self, item: ChecklistItem) -> str:
        known = {"done": MATCHED, "in_progress": ARROW, "pending": WAITING}
        return known[item.status]

    def _spin(self) -> str:
        return SPINNER[self._frame % len(SPINNER)]


def _in_sight(items: Sequence[ChecklistItem]) -> Sequence[ChecklistItem]:
    """Return at most `LINES_CHECKLIST` items of a checklist, around the first item that is not done."""
    begun = next((number for number, item in enumerate(items) if item.status != "done"), len(items))
    first = max(0, min(begun - 1, len(items) - LINES_CHECKLIST))
    return items[first : first + LINES_CHECKLIST]


def _row(content: str, style: str = "") -> Line:
    """Return a line that is shortened to the width and never wrapped."""
    return Line(content, style=style, no_wrap=True, overflow="ellipsis")
