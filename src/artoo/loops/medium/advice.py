"""The planner's queries to memory, and its advice, with the weight from which a prohibition binds.

No model is asked.

Calibration ──► advice_from ──► must_not  enforced by the plan validator and the tool layer
                           ├──► cautions  the user is asked before the call
                           └──► lines     the prompt's PROCEDURES, CONSTRAINTS, CAUTIONS, CURATED_KNOWLEDGE
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from artoo.contracts.envelope import Envelope
from artoo.contracts.errors import MemoryStoreError
from artoo.contracts.memory import Calibration, CalibrationEntry, MemoryAction, MemoryRead, Potentials
from artoo.contracts.plan import Caution, MustNot, PlannedSubTask
from artoo.contracts.tags import (
    Pair,
    is_kind,
    is_wide,
    kind_pair,
    macro_pair,
    micro_pair,
    placed,
    target_of,
    thing_pair,
    tool_of,
    tool_pair,
)
from artoo.loops.medium.blocking import keeping_hands
from artoo.loops.medium.kinds import Kinds, kinds_of
from artoo.loops.tool_text import is_short
from artoo.ports.bus import Port
from artoo.ports.recall import Recall
from artoo.ports.tools import ToolSpec
from artoo.prompts.segments import Segment

# Two experiences never reach this weight, because each has a weight of at most .95. Three new ones of .85 reach it
# for five days. Two never reach it (at most .95 each); three new ones of .85 reach it for five days.
BINDING_WEIGHT = 2.0
# At most this many names (files, places and addresses) from one text are looked up in memory.
MOST_MENTIONS = 8
_LINE = 160
_QUOTED = re.compile(r"(?<![A-Za-z0-9])[\"'`“‘「《]([^\"'`“”‘’「」《》\n]{1,200})[\"'`”’」》]")
_WORD = re.compile(r"https?://[^\s\"'<>]+|[A-Za-z0-9_~.*/@:+-]+")
_NAME = re.compile(r".*(?:[/*]|\.[A-Za-z0-9]{1,8}$)")


@dataclass(frozen=True, slots=True)
class Advice:
    """The advice of memory for one plan. Each group holds the lines of one prompt segment, one entry a line."""

    must_not: MustNot = field(default_factory=MustNot)
    cautions: tuple[Caution, ...] = ()
    prefer: tuple[str, ...] = ()
    forbid: tuple[str, ...] = ()
    care: tuple[str, ...] = ()
    known: tuple[str, ...] = ()

    def with_kinds(self, told: Sequence[str]) -> Advice:
        """Return the advice with the labels of known kinds of request added, so that the model can choose one."""
        if not told:
            return self
        lines = ("Kinds of request that are known (reuse one as `kind` if the request is of it):", *told)
        return replace(self, known=(*self.known, *lines))

    def segments(self, prohibited: str) -> dict[Segment, str]:
        """Return the memory segments. `prohibited` is the text of all prohibitions that code enforces."""
        return {
            Segment.CURATED_KNOWLEDGE: _listed(self.known),
            Segment.PROCEDURES: _listed(self.prefer),
            Segment.CONSTRAINTS: "\n".join(filter(None, (prohibited, _listed(self.forbid)))),
            Segment.CAUTIONS: _listed(self.care),
        }


def pairs_of(
    specs: Sequence[ToolSpec],
    met: Iterable[Pair],
    worked: Iterable[Pair],
    kind: str,
    text: str,
    things: Iterable[Pair],
) -> tuple[Pair, ...]:
    """Return the (tool, target) pairs to ask memory about before a request of `kind` is planned. These are all
    offered tools and their programs that were `met` before, both for this kind of request and in general; each tool
    together with each name in `text`; the pairs that `worked` for such a request; and the places where missing
    `things` were found.
    """
    offered = {spec.name for spec in specs}
    programs = [name for pair in met if (name := tool_of(pair) or "").partition(":")[0] in offered]
    tools = dict.fromkeys((*(spec.name for spec in specs), *programs))
    about = (pair for name in tools for pair in (kind_pair(name, kind), tool_pair(name)))
    micro = (micro_pair(spec.name, name) for spec in specs for name in mentions(text))
    return tuple(dict.fromkeys((*about, *worked, *micro, *things)))


def mentions(text: str) -> tuple[str, ...]:
    """Return the files, patterns, places and addresses that a text names, in the form tools take; at most eight."""
    words = [word.rstrip(".,;:") for word in _WORD.findall(_QUOTED.sub(" ", text))]
    found = [*_QUOTED.findall(text), *(word for word in words if _NAME.match(word))]
    return tuple(dict.fromkeys(_plain(name) for name in found))[:MOST_MENTIONS]


def advice_from(found: Calibration, specs: Sequence[ToolSpec], worked: Collection[Pair] = ()) -> Advice:
    """Turn a calibration into advice for a plan. `worked` are the pairs that succeeded for this kind of request.

    A lesson from another task counts only if it is about the same target or kind of request, or if it has become a
    rule. A general lesson about a tool counts only if the tool is one of the user's own, because such a tool does
    only one thing. A general tool runs or reads anything, so one bad experience says nothing about its next use.
    For the same kind of request one bad experience is a warning, and several forbid the tool. At least one tool
    that reads and one that writes always remain allowed. Lessons from which a rule was made are not listed next to
    the rule. The advice never contradicts itself: a tool that is forbidden, or that has a warning for this kind of
    request, is neither recommended nor suggested as a guess.
    """
    own = frozenset(spec.name for spec in specs if spec.special)
    bad = [(entry, tool_of(entry.pair) or "", target_of(entry.pair)) for entry in found.must_not]
    targets = tuple((tool, target) for entry, tool, target in bad if target is not None and entry.enforced)
    wide = [tool for entry, tool, target in bad if target is None and _binds(entry, own)]
    blocked = keeping_hands(wide, specs)
    bound = [
        entry
        for entry, tool, target in bad
        if (tool, target) in targets
        or (target is None and tool in blocked and _binds(entry, own))
        or (entry.rule_id is not None and not tool)
    ]
    loose = [entry for entry in found.must_not if entry not in bound]
    ruled = {entry.pair for entry in (*found.should_prefer, *found.must_not) if entry.rule_id is not None}

    refused = {*blocked, *(tool for _, tool, target in bad if tool and target is None)}

    def told(entries: Sequence[CalibrationEntry]) -> list[CalibrationEntry]:
        return [entry for entry in entries if entry.rule_id is not None or entry.pair not in ruled]

    def allowed(entries: Iterable[CalibrationEntry]) -> list[CalibrationEntry]:
        return [entry for entry in entries if not _is_among(refused, entry.pair)]

    return Advice(
        must_not=MustNot(tools=blocked, targets=targets),
        cautions=tuple(caution for entry in found.caution if (caution := caution_of(entry.pair)) is not None),
        prefer=_lines(
            _said(allowed(told(found.should_prefer)), own, worked, good=True),
            (guess.content for guess in allowed(found.hypotheses)),
        ),
        forbid=_lines(entry.content for entry in bound if entry.rule_id is not None),
        care=_lines(_said(told([*loose, *found.caution]), own, worked)),
        known=_lines(f"{place} (remembered; check it first)" for place in found.known),
    )


def caution_of(pair: Pair) -> Caution | None:
    """Return the question that the user is asked before a tool is used on a target. Return None for a pair without
    a tool or without a target."""
    identity, target = tool_of(pair), target_of(pair)
    if identity is None or not target:
        return None
    return Caution(identity=identity, target=target, reason="it was good as often as bad before")


def in_words(pair: Pair) -> str:
    """Describe a pair in a prompt, for example as `read_file on a.txt`, `shell:find` or `this kind of request`."""
    identity, target = tool_of(pair), target_of(pair)
    if identity is None:
        return "this kind of request"
    return f"{identity} on {target}" if target and is_short(target) else identity


def _is_among(tools: Collection[str], pair: Pair) -> bool:
    """Return whether a pair, or a guess, is about one of these tools or about a program that one of them runs."""
    identity = tool_of(pair) or pair.entity.removeprefix("tool:")
    return identity in tools or identity.partition(":")[0] in tools


def _binds(entry: CalibrationEntry, own: Collection[str]) -> bool:
    """Return whether an entry whose action is Avoid forbids the tool, and does not only warn of it. `own`: the
    user's own tools."""
    if not entry.enforced:
        return False
    often = is_kind(entry.pair) and (entry.attention - entry.decision) / 2 >= BINDING_WEIGHT
    return entry.rule_id is not None or tool_of(entry.pair) in own or often


def _said(
    entries: Iterable[CalibrationEntry], own: Collection[str], worked: Collection[Pair], *, good: bool = False
) -> Iterable[str]:
    """Yield the lessons that concern this request, each with the observation that was recorded for it. These are
    rules, lessons about the request's kind or targets, pairs that `worked`, and lessons about the user's own tools.
    A bad lesson without an observation is omitted.
    """
    for entry in entries:
        if entry.rule_id is not None:
            yield entry.content
        elif is_wide(entry.pair) and entry.pair not in worked and tool_of(entry.pair) not in own:
            continue
        elif entry.content:
            yield f"{in_words(entry.pair)}: {entry.content}"
        elif good and tool_of(entry.pair) is not None:
            yield in_words(entry.pair)


def _lines(*groups: Iterable[str]) -> tuple[str, ...]:
    lines = (" ".join(line.split())[:_LINE] for group in groups for line in group)
    return tuple(dict.fromkeys(filter(None, lines)))


def _listed(lines: Iterable[str]) -> str:
    return "\n".join(f"- {line}" for line in lines)


def _plain(name: str) -> str:
    return name if "://" in name else posixpath.normpath(name)


_MOST_MISSING = 8


@dataclass(slots=True)
class Counsel:
    """Asks memory for advice on planning one task. An error of the store is reported once, and the store is not
    asked again in this task.

    If `recall` is None, memory is off, and nothing is read or reported. Memory is asked about targets by their path
    in `project`, because another project has other files.
    """

    port: Port
    recall: Recall | None
    project: str = ""

    async def kinds(self, text: str, cause: Envelope) -> Kinds:
        """Return the known kinds of request that are similar to this text."""
        try:
            return kinds_of(text, () if self.recall is None else await self.recall.requests())
        except MemoryStoreError as error:
            self._give_up(macro_pair(text), error, cause)
            return kinds_of(text, ())

    async def before(
        self, kind: str, text: str, specs: Sequence[ToolSpec], missing: Sequence[str], cause: Envelope
    ) -> Advice:
        """Return the advice for planning a request of `kind`. Publishes MemoryRead, and RuleContradicted for each
        overruled rule.
        """
        if self.recall is None:
            return Advice()
        macro = macro_pair(kind)
        try:
            good = [entry.pair for entry in await self.recall.alternatives(kind)]
            # files that other requests used do not matter for this one
            worked = [pair for pair in good if target_of(pair) is None]
            names = [posixpath.basename(name) for name in missing[:_MOST_MISSING]]
            things = [thing_pair(name, place) for name in names for place in (self.project, "")]
            pairs = pairs_of(specs, await self.recall.tool_pairs(), worked, kind, text, things)
            named = {placed(pair, self.project): pair for pair in pairs}
            found = await self.recall.calibrate(kind, tuple(named))
        except MemoryStoreError as error:
            self._give_up(macro, error, cause)
            return Advice()
        self.port.publish(_read(macro, len(pairs) + 1, found), cause=cause)
        for overruled in found.contradicted:
            self.port.publish(overruled, cause=cause)
        return advice_from(_named(found, named), specs, worked)

    async def on_draft(
        self, subtasks: Sequence[PlannedSubTask], forbidden: Sequence[tuple[str, str]], cause: Envelope
    ) -> tuple[list[str], tuple[Caution, ...]]:
        """Return the objections to the (tool, target) pairs that a draft names, and the questions to ask the user
        about such pairs.

        A pair that is `forbidden` already gets no second objection.
        """
        refused_anyhow = {(identity.partition(":")[0], target) for identity, target in forbidden}
        named = [
            (number, micro_pair(each.tool, target))
            for number, each in enumerate(subtasks, 1)
            if each.tool is not None
            for target in mentions(each.intent)
            if (each.tool, target) not in refused_anyhow
        ]
        if self.recall is None or not named:
            return [], ()
        first = named[0][1]
        try:
            live = await self.recall.potentials_of([placed(pair, self.project) for _, pair in named])
        except MemoryStoreError as error:
            self._give_up(first, error, cause)
            return [], ()
        known = [(number, pair, entry) for (number, pair), entry in zip(named, live, strict=True)]
        telling = tuple(entry for entry in live if entry.action is not MemoryAction.IGNORE)
        self.port.publish(
            MemoryRead(space=first.space, entity=first.entity, pairs=len(named), potentials=telling), cause=cause
        )
        refused = [
            f"subtask {number} uses {in_words(pair)}, which failed on it before (balance {entry.decision:+.2f})"
            for number, pair, entry in known
            if entry.action is MemoryAction.AVOID
        ]
        asked = (caution_of(pair) for _, pair, entry in known if entry.action is MemoryAction.CAUTION)
        return refused, tuple(dict.fromkeys(caution for caution in asked if caution is not None))

    def _give_up(self, pair: Pair, error: MemoryStoreError, cause: Envelope) -> None:
        self.recall = None
        self.port.publish(MemoryRead(space=pair.space, entity=pair.entity, error=str(error)), cause=cause)


def _named(found: Calibration, named: Mapping[Pair, Pair]) -> Calibration:
    """Replace the targets in a calibration by the names that the request uses."""

    def of(entries: Sequence[CalibrationEntry]) -> tuple[CalibrationEntry, ...]:
        return tuple(one.model_copy(update=named.get(one.pair, one.pair)._asdict()) for one in entries)

    lists = {"should_prefer": found.should_prefer, "must_not": found.must_not, "caution": found.caution}
    return found.model_copy(update={name: of(entries) for name, entries in lists.items()})


def _read(macro: Pair, pairs: int, found: Calibration) -> MemoryRead:
    groups = (
        (MemoryAction.EXPLOIT, found.should_prefer),
        (MemoryAction.AVOID, found.must_not),
        (MemoryAction.CAUTION, found.caution),
    )
    entries = [(entry, action) for action, group in groups for entry in group]
    live = tuple(
        Potentials(
            space=entry.space,
            entity=entry.entity,
            attention=entry.attention,
            decision=entry.decision,
            action=action,
        )
        for entry, action in entries
        if entry.rule_id is None
    )
    sops = len(entries) - len(live) + len(found.contradicted)
    return MemoryRead(space=macro.space, entity=macro.entity, pairs=pairs, sops=sops, potentials=live)
