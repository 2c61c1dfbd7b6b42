"""Put approval before the calls of the user's functions and of foreign tools, with the details of the question.

These operations cannot be undone.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from artoo.contracts.confirmation import ConfirmationRequest
from artoo.contracts.execution import CallEffects, CallStatus
from artoo.ports.arguments import as_text
from artoo.ports.tools import ToolSpec
from artoo.tools.approval.gate import Gate
from artoo.tools.core.to_thread import in_thread
from artoo.tools.core.tool import Arguments, Outcome, Tool
from artoo.tools.files.unified_diff import plain
from artoo.tools.provenance.taint import Carried, Foreign
from artoo.tools.resume.in_flight import Announcing, goes_out
from artoo.words.catalogue import word

Why = Callable[[Arguments], str | None]
"""Returns the reason why a call needs approval. Returns None if the call's own effects need no approval."""


_MOST_SOURCES = 8
_LONGEST_NAME = 80


def always(reason: str = "it changes things") -> Why:
    """Return a function that gives every call this reason for approval."""
    return lambda arguments: reason


def never(arguments: Arguments) -> str | None:
    """Require no approval, for tools whose calls only read. A call whose target came from data needs approval
    nevertheless."""
    return None


@dataclass(frozen=True, slots=True)
class Asking(Announcing):
    """A tool that asks the user before a call which needs approval. The reason may be its effects, or the hosts
    that it would reach.

    A host or recipient always needs approval if its first mention was in a file, a page or a tool's output, and not
    in the request. Each question shows which other values came from such a text. That alone is no reason to ask,
    and policies do not see it. `outward`: true if the arguments leave this machine. Words of files that are not in
    the request then need approval too, and are shown. `reads_only`: true if a call for which `why` gives no reason
    has no effects, so that it may be repeated after a crash. Any other call may have had its effects as soon as it
    was sent.
    """

    inner: Tool
    gate: Gate = field(default_factory=Gate)
    why: Why = field(default_factory=always)
    reads_only: bool = False
    outward: bool = False

    @property
    def spec(self) -> ToolSpec:
        return self.inner.spec

    @property
    def wall_seconds(self) -> float:
        return self.inner.wall_seconds

    def identities(self, arguments: Arguments) -> tuple[str, ...]:
        return self.inner.identities(arguments)

    def target(self, arguments: Arguments) -> str:
        return self.inner.target(arguments)

    async def run(self, arguments: Arguments) -> Outcome:
        """Run the inner tool after approval. Without approval, return a refusal that says whether a person
        refused."""
        reason, texts = self.why(arguments), tuple(map(as_text, arguments.values()))
        foreign = self.gate.origins.foreign(texts)
        carried = await in_thread(self.gate.origins.carried, texts) if self.outward else ()
        if reason is None and self.outward and self.gate.origins.full:
            reason = "so much was read that its words cannot be told from these"
        if reason is not None or foreign or carried:
            quoted = await in_thread(self.gate.origins.quoted, texts)
            source = _sources((*foreign, *carried, *quoted))
            asks = reason is not None or bool(carried)
            refusal = await self.gate.refusal(self._question(arguments, reason, foreign, source, asks=asks))
            if refusal is not None:
                return Outcome(
                    status=CallStatus.REFUSED,
                    reason=f"{self.spec.name} was not run: {refusal.reason}",
                    dropped=(plain(f"{self.identities(arguments)[0]} {self.target(arguments)}".strip()),),
                    withheld_by=refusal.by,
                )
        repeatable = self.reads_only and reason is None
        await goes_out(CallEffects.NONE if repeatable else CallEffects.OUTSIDE)
        if not repeatable:
            self.gate.outside.append(
                plain(f"tool {self.identities(arguments)[0]} {self.target(arguments)}".strip())
            )
        return await self.inner.run(arguments)

    def _question(
        self,
        arguments: Arguments,
        reason: str | None,
        foreign: tuple[Foreign, ...],
        source: str | None,
        *,
        asks: bool,
    ) -> ConfirmationRequest:
        """Build the question. `asks`: true if the call itself needs approval, and not only the hosts and recipients
        that it names."""
        identity = self.identities(arguments)[0]
        act = json.dumps(dict(sorted(arguments.items())), ensure_ascii=True)
        own = [("tool", f"{identity} {self.target(arguments)}".strip())] if asks else []
        return self.gate.question(
            (identity, act),
            f"{word('tool', self.gate.language)} {identity}",
            _details(arguments, reason),
            (*own, *((one.kind, one.name) for one in foreign)),
            source,
        )


def _sources(named: Iterable[Foreign | Carried]) -> str | None:
    """List the values that came from data, with their sources. Each value is shortened here, because the details of
    the question show it in full."""
    said = dict[tuple[str, str], str]()
    for one in named:
        said.setdefault((one.name.casefold(), one.source), f"{_short(one.name)}: {one.source}")
    listed = list(said.values())
    more = [f"… +{len(listed) - _MOST_SOURCES}"] if len(listed) > _MOST_SOURCES else []
    return "; ".join([*listed[:_MOST_SOURCES], *more]) or None


def _short(name: str) -> str:
    shown = plain(" ".join(name.split()))
    return shown if len(shown) <= _LONGEST_NAME else f"{shown[:_LONGEST_NAME]}…"


def _details(arguments: Arguments, reason: str | None) -> Iterator[str]:
    """Yield each argument in full, line by line."""
    for key, value in arguments.items():
        lines = as_text(value).splitlines() or [""]
        yield f"{key}: {lines[0]}"
        yield from (f"  {line}" for line in lines[1:])
    if reason is not None:
        yield from reason.splitlines()
