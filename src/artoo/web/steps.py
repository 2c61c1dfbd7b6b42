"""The steps of a task's executors as its conversation shows them: commands with their output, and texts.

They are read from the log. A page shows the latest 40, each with the last 3,000 characters of its output.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from artoo.tasklog.event_text import Json, object_in
from artoo.words.shown import printable, uncoloured

MOST_STEPS = 40
LONGEST_OUTPUT = 3_000
_TALKED = re.compile(rb'"turn":\{"text":"(?!")')


@dataclass(frozen=True, slots=True)
class Step:
    """A command, or a text of a model if `tool` is empty. `number` is its line, `status` as in ToolCall."""

    number: int
    tool: str = ""
    input: str = ""
    text: str = ""
    cut: bool = False
    status: str = ""
    duration_ms: int = 0

    @property
    def name(self) -> str:
        """Return the first line of a command."""
        return self.input.strip().partition("\n")[0]


def is_step(kind: str, line: bytes) -> bool:
    """Check whether a line of a log records a command, or a turn in which an executor wrote a text."""
    return kind == "ToolCalled" or (kind == "ModelCalled" and _TALKED.search(line) is not None)


def step_of(number: int, fields: Json) -> Step:
    """Build the step of a parsed line."""
    payload = object_in(fields.get("payload"))
    call = object_in(payload.get("call"))
    if not call:
        text = str(object_in(payload.get("turn")).get("text") or "")
        return Step(number, text=printable(text.strip()))
    written = (str(call.get(name) or "").strip("\n") for name in ("output", "error_output", "reason"))
    output = uncoloured("\n".join(filter(None, written)))
    took = call.get("duration_ms")
    return Step(
        number,
        str(call.get("tool", "")),
        printable(str(call.get("input", ""))),
        printable(output[-LONGEST_OUTPUT:]),
        len(output) > LONGEST_OUTPUT,
        str(call.get("status", "")),
        took if isinstance(took, int) else 0,
    )
