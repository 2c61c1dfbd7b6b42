"""What an executor remembers of its subtask: every call of every attempt, numbered, and each correction in between.

    [1] shell: pytest -q
    FAILED test_cart.py::test_total
    exit 1
    Your answer: …
    Not accepted: …
    [2] edit_file: cart.py
    ok; touched cart.py

Nothing is taken away. Where all of it is more than the model's window has room for, the newest call is whole and
older ones keep head and tail.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from artoo.contracts.execution import OUTPUT_KEPT, CallStatus, CorrectionSignal, ToolCall
from artoo.contracts.shortened import listed, without_middle

_RESERVED_TOKENS = 3_000
"""Of the window: instructions, tools, listing, assignment and answer."""
_BYTES_A_TOKEN = 3
"""Cautious: code has about three, prose more, and a Chinese character is three for less than one token."""
_SMALL_BYTES = 6_000
"""A small model reads slowly and loses the thread in much text."""
_READ_SHARE = 4
"""Of the record's room, one part in so many for one look at a file: there are other calls in it."""
_MOST_READ = 16_000
_LEAST = 300
_ANSWER_BYTES = 600
"""Of a refused answer, head and tail."""
_LAST_ANSWER_SHARE = 4
"""Of the room, one part in so many for the answer that was refused last, if that is more: it is to be mended."""

Key = tuple[str, ...]


def today_is(at: datetime) -> str:
    """The day where the person is, for prompts whose model can reckon with it."""
    return f"Today: {at.astimezone().date().isoformat()}"


def room_for_record(window: int, *, small: bool) -> int:
    """Bytes of record that a model of this window (tokens) is shown."""
    room = max(_SMALL_BYTES, (window - _RESERVED_TOKENS) * _BYTES_A_TOKEN)
    return min(room, _SMALL_BYTES) if small else room


def kept_of_a_read(window: int, *, small: bool) -> int:
    """Characters of a file that one call shows such a model, at most 16,000: what is cut costs it another step."""
    return max(OUTPUT_KEPT, min(_MOST_READ, room_for_record(window, small=small) // _READ_SHARE))


@dataclass(slots=True)
class Record:
    """Calls in order; after how many of them each correction came, and what it refused. Paths are shown from
    `project`. `remarks`: what happened outside the calls, and after how many of them."""

    project: str = ""
    calls: list[ToolCall] = field(default_factory=list[ToolCall])
    corrections: list[tuple[int, CorrectionSignal, str]] = field(
        default_factory=list[tuple[int, CorrectionSignal, str]]
    )
    remarks: list[tuple[int, str]] = field(default_factory=list[tuple[int, str]])
    _keys: list[Key] = field(default_factory=list[Key])

    def remark(self, facts: Sequence[str]) -> None:
        """Keep what happened outside the calls before the next one."""
        self.remarks += ((len(self.calls), fact) for fact in facts)

    def add(self, call: ToolCall, key: Key = ()) -> None:
        """A call ended. `key` tells calls apart: the same key is the same call."""
        self.calls.append(call)
        self._keys.append(key)

    def correct(self, correction: CorrectionSignal, answer: str = "") -> None:
        """What was said about everything so far; `answer` is what was said in own words, and refused."""
        self.corrections.append((len(self.calls), correction, answer.strip()))

    def same(self, key: Key) -> int | None:
        """The number of the same call, if nothing has changed since it was made: it would put out the same.

        Where a process ran on after a call, a call was cut off, or something else happened since, it may put out
        something else.
        """
        last = max((after for after, _ in self.remarks), default=0)
        for number in range(len(self.calls), last, -1):
            call = self.calls[number - 1]
            cut_off = call.status is CallStatus.INTERRUPTED and call.withheld_by is None
            if call.process or cut_off:
                return None
            if self._keys[number - 1] == key:
                return number
            if call.changed_something:
                return None
        return None

    def answer_of(self, call: ToolCall) -> str:
        """What a call gives that was announced as the answer: its output, or the names of what it made."""
        if call.status is not CallStatus.OK:
            return ""
        return call.output.strip() or listed(self._near(call.changes))

    def text(self, room: int) -> str:
        """The whole record in at most about `room` bytes."""
        parts = [self._call_text(number, call) for number, call in enumerate(self.calls, 1)]
        said = self._corrections(room)
        left = room - sum(_size(line) for lines in said.values() for line in lines)
        lines = list(said.get(0, ()))
        for number, part in enumerate(_fitted(parts, left), 1):
            lines += [part, *said.get(number, ())]
        return "\n\n".join(lines)

    def _corrections(self, room: int) -> dict[int, list[str]]:
        """What was said, by how many calls it came after."""
        found: dict[int, list[str]] = {}
        for number, (after, correction, answer) in enumerate(self.corrections, 1):
            last = number == len(self.corrections)
            most = max(_ANSWER_BYTES, room // _LAST_ANSWER_SHARE) if last else _ANSWER_BYTES
            found.setdefault(after, []).append(_correction_text(correction, _cut(answer, most)))
        for after, fact in self.remarks:
            found.setdefault(after, []).append(fact)
        return found

    def _call_text(self, number: int, call: ToolCall) -> str:
        given = call.input if "\n" not in call.input else f"\n{call.input}"
        ending = _ending(call, self._near(call.changes))
        error = call.error_output.strip()
        printed = [call.output.rstrip("\n"), f"stderr: {error}" if error else ""]
        ended_badly = call.exit_code and any(printed)  # what it printed may be what was wanted
        parts = [*printed, ending] if ended_badly else [ending, *printed]
        return "\n".join(filter(None, (f"[{number}] {call.tool}: {given}", *parts)))

    def _near(self, paths: Sequence[str]) -> list[str]:
        prefix = f"{self.project.rstrip('/')}/"
        return [path.removeprefix(prefix) if self.project else path for path in paths]


def _ending(call: ToolCall, changed: Sequence[str]) -> str:
    """How the call ended, in a line. A program that ended with another code than 0 may well have done its work."""
    if call.exit_code is not None and call.status in (CallStatus.OK, CallStatus.ERROR):
        parts = ["ok" if call.exit_code == 0 and call.status is CallStatus.OK else f"exit {call.exit_code}"]
    else:
        parts = [call.status.value]
    if call.ran is not None:
        parts.append(f"ran: {call.ran}")
    if call.reason and call.reason not in call.error_output:
        parts.append(call.reason)
    if changed:
        parts.append(f"touched {listed(changed)}")
    if call.status is CallStatus.OK and not (call.output.strip() or call.error_output.strip() or call.changes):
        parts.append("printed nothing")
    return "; ".join(parts)


def _correction_text(correction: CorrectionSignal, answer: str) -> str:
    said = f"Your answer: {answer}" if answer else ""
    wrong = f"Not accepted: {correction.what_was_wrong.strip()}"
    return "\n".join(filter(None, (said, wrong, correction.what_to_do.strip())))


def _fitted(parts: list[str], room: int) -> list[str]:
    """The newest whole as far as it fits, then the ones before it, each cut to its share of what is left."""
    fitted: list[str] = []
    for older, part in reversed(list(enumerate(parts))):
        share = room - older * _LEAST if not fitted else room // (older + 1)
        shown = _cut(part, max(_LEAST, share))
        room -= _size(shown)
        fitted.append(shown)
    return fitted[::-1]


def _cut(text: str, room: int) -> str:
    """Head and tail in about `room` bytes."""
    size = _size(text)
    return text if size <= room else without_middle(text, room * len(text) // size)


def _size(text: str) -> int:
    return len(text.encode(errors="replace"))
