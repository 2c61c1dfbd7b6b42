"""The 24 segments of a prompt, their headings, and their two orders (small model or prompt cache).

Reference: SPEC section 9; `004`, pitfall "context window fragmentation".

Servers find cached prompts by a common beginning (prefix), so the parts that two calls share come first. An empty
segment is left out.

- `assemble`: the segments that change least come first. A role's own text is in the system message. Used for small
  models, because the embedded server stores the state after that message on disk, in a file for each role.
- `assemble_shared`: the parts that all roles of a task share come first, in both messages. Used for all other
  models. Of a role's own text, the system message contains only the line that names its contract, at its end.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import IntEnum


class Segment(IntEnum):
    """The segments' names, in the order of `assemble`. A segment with a lower number changes less often."""

    IDENTITY = 1
    LAWS = 2
    ROLE = 3
    CONTRACT = 4
    TOOLS = 5
    USER_TOOLS = 6
    AGENT_PERSONA = 7
    AGENT_SKILLS = 8
    AGENT_LIMITS = 9
    PROJECT_GUIDE = 10
    CURATED_KNOWLEDGE = 11
    PROCEDURES = 12
    CONSTRAINTS = 13
    CAUTIONS = 14
    ENVIRONMENT = 15
    SESSION = 16
    MAIL = 17
    SURROUNDINGS = 18
    TASK = 19
    DIRECTIVE = 20
    CONTEXT = 21
    SUBTASK = 22
    EVIDENCE = 23
    CLOSING = 24


LAST_STABLE = Segment.AGENT_LIMITS

_HEADINGS: dict[Segment, str] = {
    Segment.TOOLS: "Tools",
    Segment.USER_TOOLS: "More tools",
    Segment.PROJECT_GUIDE: "Project guide",
    Segment.CURATED_KNOWLEDGE: "Known",
    Segment.PROCEDURES: "Should prefer",
    Segment.CONSTRAINTS: "Must not use",
    Segment.CAUTIONS: "Caution",
    Segment.SESSION: "Earlier in this conversation",
    Segment.MAIL: "Mail",
    Segment.SURROUNDINGS: "Files here",
    Segment.TASK: "Request",
    Segment.DIRECTIVE: "What must change",
    Segment.SUBTASK: "Your subtask",
    Segment.EVIDENCE: "Evidence",
}
_HEADS = {segment: f"{_HEADINGS[segment]}:\n" if segment in _HEADINGS else "" for segment in Segment}


_COMMON_SYSTEM = (Segment.IDENTITY, Segment.LAWS, Segment.AGENT_PERSONA, Segment.AGENT_LIMITS)
_COMMON_USER = (
    Segment.PROJECT_GUIDE,
    Segment.ENVIRONMENT,
    Segment.SESSION,
    Segment.MAIL,
    Segment.SURROUNDINGS,
    Segment.TASK,
    Segment.CURATED_KNOWLEDGE,
)
_OWN = tuple(segment for segment in Segment if segment not in (*_COMMON_SYSTEM, *_COMMON_USER))


def assemble(parts: Mapping[Segment, str]) -> tuple[str, str]:
    """Return the system message and the user message. The role's own text comes first."""
    system = [segment for segment in Segment if segment <= LAST_STABLE]
    return _joined(parts, system), _joined(parts, [segment for segment in Segment if segment > LAST_STABLE])


def assemble_shared(parts: Mapping[Segment, str]) -> tuple[str, str]:
    """Return the system message and the user message. The role's own text comes after the text that all roles
    share.

    The line `contract: NAME` ends the system message. A program that plays a role finds the role by this line (SPEC
    section 2).
    """
    line, _, contract = parts.get(Segment.CONTRACT, "").strip().partition("\n")
    system = "\n\n".join(text for text in (_joined(parts, _COMMON_SYSTEM), line) if text)
    return system, _joined({**parts, Segment.CONTRACT: contract}, (*_COMMON_USER, *_OWN))


def _joined(parts: Mapping[Segment, str], order: Iterable[Segment]) -> str:
    told = ((segment, parts.get(segment, "").strip()) for segment in order)
    return "\n\n".join(_HEADS[segment] + text for segment, text in told if text)
