"""The 24 segments of a prompt, most stable first (SPEC section 9; `004`, pitfall "context window fragmentation").

Servers cache prompts by prefix. Whatever changes least stands first, so that two calls share the longest
prefix they can. Segments up to `LAST_STABLE` form the system message, the others the user message. An
empty segment costs nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum


class Segment(IntEnum):
    """Names and order. A lower number changes less often."""

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


def assemble(parts: Mapping[Segment, str]) -> tuple[str, str]:
    """The system and the user message for these segments, in order, each under its heading."""
    told = {segment: text for segment in sorted(parts) if (text := parts[segment].strip())}
    system = [_HEADS[segment] + text for segment, text in told.items() if segment <= LAST_STABLE]
    user = [_HEADS[segment] + text for segment, text in told.items() if segment > LAST_STABLE]
    return "\n\n".join(system), "\n\n".join(user)
