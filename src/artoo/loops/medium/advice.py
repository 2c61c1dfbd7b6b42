"""What memory's calibration means for one plan: prohibitions, questions to a person, and lines of the prompt.

    Calibration ──► advice_from ──► must_not  enforced by the plan validator and the tool layer
                               ├──► cautions  asked about before the call
                               └──► lines     the prompt's PROCEDURES, CONSTRAINTS, CAUTIONS, CURATED_KNOWLEDGE

Pure: no store, no stream.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace

from artoo.contracts.memory import Calibration, CalibrationEntry
from artoo.contracts.plan import Caution, MustNot
from artoo.contracts.tags import Pair, is_kind, is_wide, kind_pair, micro_pair, target_of, tool_of, tool_pair
from artoo.loops.medium.blocking import keeping_hands
from artoo.loops.tool_text import is_short
from artoo.ports.tools import ToolSpec
from artoo.prompts.segments import Segment

BINDING_WEIGHT = 2.0
"""Weight of bad experiences, (attention − decision) / 2, from which on a general tool is forbidden to the kind of
request that made them: two never reach it (.95 each at most), three fresh ones (.85) do for five days.
"""
MOST_MENTIONS = 8
"""Files, places and addresses of one text that are looked up."""
_LINE = 160
_QUOTED = re.compile(r"(?<![A-Za-z0-9])[\"'`“‘「《]([^\"'`“”‘’「」《》\n]{1,200})[\"'`”’」》]")
_WORD = re.compile(r"https?://[^\s\"'<>]+|[A-Za-z0-9_~.*/@:+-]+")
_NAME = re.compile(r".*(?:[/*]|\.[A-Za-z0-9]{1,8}$)")


@dataclass(frozen=True, slots=True)
class Advice:
    """Memory's part in one plan. The line groups are ready for the prompt, one entry each."""

    must_not: MustNot = field(default_factory=MustNot)
    cautions: tuple[Caution, ...] = ()
    prefer: tuple[str, ...] = ()
    forbid: tuple[str, ...] = ()
    care: tuple[str, ...] = ()
    known: tuple[str, ...] = ()

    def with_kinds(self, told: Sequence[str]) -> Advice:
        """Return the advice with the labels of known kinds of request, to choose one from."""
        if not told:
            return self
        lines = ("Kinds of request that are known (reuse one as `kind` if the request is of it):", *told)
        return replace(self, known=(*self.known, *lines))

    def segments(self, prohibited: str) -> dict[Segment, str]:
        """The memory segments; `prohibited` is what is enforced, from whatever source, as text."""
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
    """What to ask memory before planning `text`, a request of `kind`: every tool on offer and each program of it
    that was `met` before, for this kind of request and as such; each tool on each thing that the text names, what
    `worked` for such a request, and where missing `things` were.
    """
    offered = {spec.name for spec in specs}
    programs = [name for pair in met if (name := tool_of(pair) or "").partition(":")[0] in offered]
    tools = dict.fromkeys((*(spec.name for spec in specs), *programs))
    about = (pair for name in tools for pair in (kind_pair(name, kind), tool_pair(name)))
    micro = (micro_pair(spec.name, name) for spec in specs for name in mentions(text))
    return tuple(dict.fromkeys((*about, *worked, *micro, *things)))


def mentions(text: str) -> tuple[str, ...]:
    """Files, patterns, places and addresses that a text names, as tools would take them, at most eight."""
    words = [word.rstrip(".,;:") for word in _WORD.findall(_QUOTED.sub(" ", text))]
    found = [*_QUOTED.findall(text), *(word for word in words if _NAME.match(word))]
    return tuple(dict.fromkeys(_plain(name) for name in found))[:MOST_MENTIONS]


def advice_from(found: Calibration, specs: Sequence[ToolSpec], worked: Collection[Pair] = ()) -> Advice:
    """Calibration as a plan needs it. `worked` are the pairs that served this kind of request.

    A lesson counts only where it was learnt: for the same target or kind of request, or as a rule. What was learnt
    of a tool as such counts for the person's own tools, which do one thing. One bad experience with what runs or
    reads anything says nothing about the next use; for the same kind of request it is a warning, and several bind.
    Something that reads and something that writes always stays. What a rule was made of is not told beside it.
    Memory speaks with one voice: a tool that must not be used, or that is warned of for this kind of request, is
    neither recommended nor guessed.
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
    """What a person is asked about for a pair that names a tool and a target; else None."""
    identity, target = tool_of(pair), target_of(pair)
    if identity is None or not target:
        return None
    return Caution(identity=identity, target=target, reason="it was good as often as bad before")


def in_words(pair: Pair) -> str:
    """A pair as a prompt names it: `read_file on a.txt`, `shell:find`, `this kind of request`."""
    identity, target = tool_of(pair), target_of(pair)
    if identity is None:
        return "this kind of request"
    return f"{identity} on {target}" if target and is_short(target) else identity


def _is_among(tools: Collection[str], pair: Pair) -> bool:
    """Whether a pair is about one of the tools, about a program of one, or guesses one."""
    identity = tool_of(pair) or pair.entity.removeprefix("tool:")
    return identity in tools or identity.partition(":")[0] in tools


def _binds(entry: CalibrationEntry, own: Collection[str]) -> bool:
    """Whether what is avoided, whatever its target, is forbidden, not only warned of. `own`: the person's tools."""
    if not entry.enforced:
        return False
    often = is_kind(entry.pair) and (entry.attention - entry.decision) / 2 >= BINDING_WEIGHT
    return entry.rule_id is not None or tool_of(entry.pair) in own or often


def _said(
    entries: Iterable[CalibrationEntry], own: Collection[str], worked: Collection[Pair], *, good: bool = False
) -> Iterable[str]:
    """Lessons about this request (a rule, its kind or target, what `worked`, a tool made for one purpose) with what
    was seen then; a bad one of which nothing more is known says nothing.
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
