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
from dataclasses import dataclass, field

from artoo.contracts.memory import Calibration, CalibrationEntry
from artoo.contracts.plan import Caution, MustNot
from artoo.contracts.tags import Pair, micro_pair, target_of, thing_pair, tool_of, tool_pair
from artoo.loops.medium.blocking import keeping_hands
from artoo.ports.tools import ToolSpec
from artoo.prompts.segments import Segment

MOST_MENTIONS = 8
"""Files, places and addresses of one text that are looked up."""
_LINE = 160
_SHOWN_TARGET = 80
_QUOTED = re.compile(r"(?<![A-Za-z0-9])[\"'`“‘「《]([^\"'`“”‘’「」《》\n]{1,200})[\"'`”’」》]")
_WORD = re.compile(r"https?://[^\s\"'<>]+|[A-Za-z0-9_~.*/@:+-]+")
_NAME = re.compile(r".*(?:[/*]|\.[A-Za-z0-9]{1,8}$)")
BAD_ENOUGH = 2.0
"""Live weight of bad experiences from which a program of a shell is forbidden in every later task.

One is worth at most .95, so two never reach it; three fresh ones (.85 each) do, for about five days.
"""
_RUNS_ANYTHING = frozenset(
    {"bash", "sh", "zsh", "python", "python3", "perl", "ruby", "node", "awk", "env", "xargs"}
)


@dataclass(frozen=True, slots=True)
class Advice:
    """Memory's part in one plan. The line groups are ready for the prompt, one entry each."""

    must_not: MustNot = field(default_factory=MustNot)
    cautions: tuple[Caution, ...] = ()
    prefer: tuple[str, ...] = ()
    forbid: tuple[str, ...] = ()
    care: tuple[str, ...] = ()
    known: tuple[str, ...] = ()

    def segments(self, prohibited: str) -> dict[Segment, str]:
        """The memory segments; `prohibited` is what is enforced, from whatever source, as text."""
        return {
            Segment.CURATED_KNOWLEDGE: _listed(self.known),
            Segment.PROCEDURES: _listed(self.prefer),
            Segment.CONSTRAINTS: "\n".join(filter(None, (prohibited, _listed(self.forbid)))),
            Segment.CAUTIONS: _listed(self.care),
        }


def pairs_of(
    specs: Sequence[ToolSpec], met: Iterable[Pair], worked: Iterable[Pair], text: str, missing: Iterable[str]
) -> tuple[Pair, ...]:
    """What to ask memory before planning `text`: every tool on offer and each program of it that was `met` before,
    each tool on each thing that the text names, what `worked` for such a request, and where `missing` things were.
    """
    offered = {spec.name for spec in specs}
    programs = (pair for pair in met if (tool_of(pair) or "").partition(":")[0] in offered)
    micro = (micro_pair(spec.name, name) for spec in specs for name in mentions(text))
    things = (thing_pair(posixpath.basename(name)) for name in missing)
    return tuple(dict.fromkeys((*(tool_pair(spec.name) for spec in specs), *programs, *worked, *micro, *things)))


def mentions(text: str) -> tuple[str, ...]:
    """Files, patterns, places and addresses that a text names, as tools would take them, at most eight."""
    words = [word.rstrip(".,;:") for word in _WORD.findall(_QUOTED.sub(" ", text))]
    found = [*_QUOTED.findall(text), *(word for word in words if _NAME.match(word))]
    return tuple(dict.fromkeys(_plain(name) for name in found))[:MOST_MENTIONS]


def advice_from(found: Calibration, specs: Sequence[ToolSpec], worked: Collection[Pair] = ()) -> Advice:
    """Calibration as a plan needs it. `worked` are the pairs that served this kind of request.

    Enforced are pairs and rules that name a tool, as long as something is left that reads and writes. One bad
    experience with what runs any program (python, a shell) says little about the next program: that is a caution.
    Likewise a general tool or a program is recommended only where it served before: `find_text` did well, but not
    at adding up, and a small model takes every line of advice. The person's own tools are recommended as such.
    """
    wide = [entry for entry in found.must_not if _is_enforced(entry, specs) and target_of(entry.pair) is None]
    blocked = keeping_hands([tool_of(entry.pair) or "" for entry in wide], specs)
    targets = [
        (tool_of(entry.pair) or "", target)
        for entry in found.must_not
        if entry.enforced and (target := target_of(entry.pair)) is not None
    ]
    bound = {tool_pair(identity) for identity in blocked} | {micro_pair(*target) for target in targets}
    binding = [
        entry for entry in found.must_not if entry.rule_id and (entry.pair in bound or not tool_of(entry.pair))
    ]
    loose = [entry for entry in found.must_not if entry.pair not in bound and entry not in binding]
    return Advice(
        must_not=MustNot(tools=blocked, targets=tuple(targets)),
        cautions=tuple(caution for entry in found.caution if (caution := caution_of(entry.pair)) is not None),
        prefer=_lines(
            (_preferred(entry) for entry in found.should_prefer if _is_telling(entry, specs, worked)),
            found.hypotheses,
        ),
        forbid=_lines(entry.content for entry in binding),
        care=_lines(
            (entry.content if entry.rule_id else f"{in_words(entry.pair)} {_past(entry)}" for entry in loose),
            (f"{in_words(entry.pair)} was sometimes good, sometimes bad" for entry in found.caution),
        ),
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
    short = target is not None and "\n" not in target and len(target) <= _SHOWN_TARGET
    return f"{identity} on {target}" if short and target else identity


def _is_enforced(entry: CalibrationEntry, specs: Sequence[ToolSpec]) -> bool:
    """A rule binds, and so does experience with a tool that does one thing. What runs anything is never forbidden
    by experience; one program of it only by several bad ones: a pipeline that failed says little about its parts.
    """
    if not entry.enforced or entry.rule_id is not None:
        return entry.enforced
    name, _, program = (tool_of(entry.pair) or "").partition(":")
    if not any(spec.name == name and spec.languages for spec in specs):
        return True
    bad = (entry.attention - entry.decision) / 2  # good ones add as much to the one channel as to the other
    return bool(program) and program not in _RUNS_ANYTHING and bad >= BAD_ENOUGH


def _is_telling(entry: CalibrationEntry, specs: Sequence[ToolSpec], worked: Collection[Pair]) -> bool:
    identity = tool_of(entry.pair)
    if entry.rule_id is not None or identity is None or target_of(entry.pair) is not None or entry.pair in worked:
        return True
    return any(spec.name == identity and spec.special for spec in specs)


def _preferred(entry: CalibrationEntry) -> str:
    if entry.rule_id is not None:
        return entry.content
    return in_words(entry.pair) if tool_of(entry.pair) else f"{in_words(entry.pair)} {entry.content}"


def _past(entry: CalibrationEntry) -> str:
    return "went wrong before" if tool_of(entry.pair) else entry.content


def _lines(*groups: Iterable[str]) -> tuple[str, ...]:
    lines = (" ".join(line.split())[:_LINE] for group in groups for line in group)
    return tuple(dict.fromkeys(filter(None, lines)))


def _listed(lines: Iterable[str]) -> str:
    return "\n".join(f"- {line}" for line in lines)


def _plain(name: str) -> str:
    return name if "://" in name else posixpath.normpath(name)
