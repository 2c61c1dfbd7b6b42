"""A second look at a file that a program made of another one, for small models: the sibling of `second_look`.

A wrong program that writes a file leaves no figure behind that could be doubted: the file is there, in the form
that was asked for. So its content is computed once more in another way; two ways that agree, one of them in the
file, are accepted. A model that was asked to print often saves again; that is another way as well.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from artoo.contracts.execution import CallStatus, CorrectionSignal, CriterionVerdict, ExecutionResult
from artoo.loops.fast import second_look
from artoo.loops.named_files import named_files

SAME_CONTENT = "Two independent ways give the same content"
"""The criterion that stands open until a second way has been tried."""

LONGEST = 20_000
"""Characters of a file that is held against a second way; a longer one would not be printed whole."""
_PROGRAMS = ("shell", "python")


@dataclass(slots=True)
class Made:
    """A file that a program made, the attempt that made it, and every content that was computed for it so far."""

    result: ExecutionResult
    path: str
    ways: list[str] = field(default_factory=list[str])

    def agreed(self, held: str) -> bool:
        """Whether two ways gave what the file holds now."""
        return sum(same(way, held) for way in self.ways) > 1

    def outvoted(self, held: str) -> bool:
        """Whether two ways gave the same, and the file holds something else."""
        others = [way for way in self.ways if not same(way, held)]
        return any(same(one, other) for number, one in enumerate(others) for other in others[number + 1 :])


def made_file(intent: str, result: ExecutionResult) -> str | None:
    """The one file that a request wants made from another, when a program of the model's own has just made it."""
    files = named_files(intent)
    last = next((call for call in reversed(result.tool_calls) if call.status is CallStatus.OK), None)
    if last is None or last.tool not in _PROGRAMS or len(files.outputs) != 1 or not files.inputs:
        return None
    path = files.outputs[0]
    return path if any(change == path or change.endswith(f"/{path}") for change in last.changes) else None


def content_of(result: ExecutionResult, path: str, held: str) -> str:
    """What an attempt computed for `path`, which holds `held` now: what it printed, or what it saved there.

    Who saves the same once more changes nothing and prints nothing.
    """
    named = any(path in f"{call.input}\n{call.ran or ''}" for call in result.tool_calls)
    saved = any(call.changes for call in result.tool_calls) or (named and not result.output.strip())
    return held if saved else result.output


def same(one: str, other: str) -> bool:
    """Whether two texts have the same lines; space at their ends and empty last lines do not count."""
    return _lines(one) == _lines(other)


def open_verdict(made: Made, held: str) -> CriterionVerdict:
    """The criterion while no two ways agree on what the file holds. One way alone blames no tool."""
    return _verdict("fail", _open(made, held))


def unrefuted(made: Made) -> CriterionVerdict:
    """The criterion when a second way could not be carried out: nothing speaks against what the file holds."""
    return _verdict(
        "pass", f"no second way to make {made.path} could be carried out; nothing contradicts the first"
    )


def _open(made: Made, held: str) -> str:
    if made.outvoted(held):
        return f"two other ways gave another content than {made.path} has"
    if len(made.ways) > 1:
        return f"different ways gave different contents for {made.path}"
    return f"the content of {made.path} was computed in one way only"


def _verdict(verdict: Literal["pass", "fail"], evidence: str) -> CriterionVerdict:
    return second_look.verdict_on(SAME_CONTENT, verdict, evidence)


def signal(result: ExecutionResult, made: Made) -> CorrectionSignal:
    """Asks for a second way, without showing the first: a program that was seen is copied."""
    return second_look.once_more(
        result,
        SAME_CONTENT,
        f"the content of {made.path} was computed in one way only",
        f"Compute what {made.path} has to hold once more in another way, from the files it is made of, and print "
        f"it; leave {made.path} as it is.",
    )


def _lines(text: str) -> list[str]:
    return [line.rstrip() for line in text.strip("\n").splitlines()]
