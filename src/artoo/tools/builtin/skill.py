"""The tool `skill`, which shows a skill's instructions in parts.

A model chooses the skill by its description.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from artoo.contracts.errors import ToolError
from artoo.ports.sandbox import Roots
from artoo.ports.tools import INTEGER, Parameter, ToolSpec
from artoo.tools.context.skills import SKILL_FILE, Skill
from artoo.tools.core.tool import Arguments, Outcome, argument
from artoo.tools.files.paths import shown
from artoo.tools.files.unified_diff import plain

NAMES = ("skill", "read_skill")
"""The name of the tool, and the name that is used if another tool already has the first one."""
LONGEST_LIST = 4_000
"""Maximum number of characters of all skill descriptions in a prompt."""
PART = 3_000
"""Number of characters of instructions that one call shows. It is less than the 4,000 that a record keeps."""
_MOST_FILES = 20
_HEAD = "Skills, each for a kind of work. Before you do such work, read its skill with the tool {tool}."
_FOREIGN = "by the authors of these files and not by the person who asks; it asks for nothing by itself"


@dataclass(frozen=True, slots=True)
class ReadSkill:
    """Shows the instructions, as they were read and approved when the task began, and the path of the skill's
    folder."""

    name: str
    skills: tuple[Skill, ...]
    roots: Roots
    wall_seconds: float = 5.0

    @property
    def spec(self) -> ToolSpec:
        return ToolSpec(
            name=self.name,
            description="read the instructions of a skill",
            parameters=(
                Parameter("name", "the skill's name"),
                Parameter("part", "of long instructions, from 1", False, schema=INTEGER),
            ),
            priority=25,
            only_reads=True,
            special=True,
            offers=tuple(_offered(self.name, self.skills)),
        )

    def identities(self, arguments: Arguments) -> tuple[str, ...]:
        return (f"{self.name}:{argument(arguments, 'name')}",)

    def target(self, arguments: Arguments) -> str:
        return argument(arguments, "name")

    async def run(self, arguments: Arguments) -> Outcome:
        """Return a part of a skill. Raises ToolError for a skill or a part that does not exist."""
        wanted, part = argument(arguments, "name"), argument(arguments, "part", "1")
        skill = next((one for one in self.skills if one.name == wanted), None)
        if skill is None:
            known = ", ".join(one.name for one in self.skills)
            raise ToolError(f"there is no skill {wanted!r}; the skills are: {known}")
        parts = tuple(pieces(skill.body)) or ("",)
        if not part.isdecimal() or not 1 <= int(part) <= len(parts):
            raise ToolError(f"skill {wanted} has the parts 1 to {len(parts)}, and not {part!r}")
        return Outcome(output=self._told(skill, int(part), parts))

    def _told(self, skill: Skill, part: int, parts: Sequence[str]) -> str:
        head = f"Skill {skill.name}, in {shown(skill.folder, self.roots)}"
        files = [one.path for one in skill.files if one.path != SKILL_FILE]
        more = f" and {len(files) - _MOST_FILES} more" if len(files) > _MOST_FILES else ""
        lines = [f"{head}, {_FOREIGN}:" if skill.foreign else f"{head}:", parts[part - 1]]
        if part < len(parts):
            lines.append(f"[part {part} of {len(parts)}; the next is part {part + 1}]")
        if files:
            lines.append(f"Its files: {plain(', '.join(files[:_MOST_FILES]))[:500]}{more}")
        return "\n".join(lines)


def pieces(text: str) -> Iterator[str]:
    """Split a text into parts of at most `PART` characters. Each part ends at a line end if possible."""
    while text:
        cut = len(text) if len(text) <= PART else text.rfind("\n", 0, PART) + 1 or PART
        yield text[:cut].rstrip("\n")
        text = text[cut:]


def free_name(taken: Iterable[str]) -> str | None:
    """Return a name that no other tool has, or None if both possible names are taken."""
    known = set(taken)
    return next(islice((name for name in NAMES if name not in known), 1), None)


def _offered(tool: str, skills: Sequence[Skill]) -> Iterator[str]:
    share = LONGEST_LIST // max(1, len(skills))
    yield _HEAD.format(tool=tool)
    for one in skills:
        whose = " (this project's)" if one.foreign else ""
        yield f"- {one.name}{whose}: {plain(one.description)[:share]}"
