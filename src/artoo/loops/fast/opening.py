"""Write the first message of an executor, its assignment, with the limit of a file tree in it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from artoo.contracts.execution import CorrectionSignal, ToolCall
from artoo.contracts.plan import Glance, SubTask
from artoo.contracts.settling import ChangeClass
from artoo.evidence.shown_files import beyond
from artoo.loops.asking import Asker, Opening
from artoo.loops.fast.conversation import CONTRACT
from artoo.loops.fast.own_tools import in_text
from artoo.loops.heuristics import Heuristics
from artoo.loops.prepared import beforehand, prepared, today_is
from artoo.loops.tool_text import other_language, program_in, prohibitions, tool_segments
from artoo.ports.surroundings import Surroundings, SurroundingsSource
from artoo.ports.tools import ToolSpec
from artoo.prompts.segments import Segment

_ALL = "The whole request."
# A request up to this length is repeated under "Your subtask" if the subtask is the whole request. A longer
# request, for example with pasted text, is not repeated.
_REPEATED = 200
_PART = "The rest of the request is not yours."
# A file tree longer than this is left out if the executor already knows with which file to begin.
_LONG_TREE = 1_200


@dataclass(slots=True)
class Briefing:
    """Writes an executor's assignment and its corrections. `unasked`: classes of changes that are applied without a
    question to the user.

    `listing` is the complete listing of the disk, and `shown` is the part of it in the first message. Only a small
    model can be shown the complete listing later.
    """

    asker: Asker
    specs: tuple[ToolSpec, ...]
    heuristics: Heuristics
    unasked: frozenset[ChangeClass]
    listing: str = ""
    shown: str = ""

    async def open(
        self, subtask: SubTask, at: datetime, own: tuple[ToolSpec, ...], surroundings: SurroundingsSource
    ) -> tuple[Opening, Glance | None]:
        """Write the first message. Also return the current surroundings if other parts of the task may have changed
        files."""
        small = self.asker.known.small
        simple = small and self.heuristics.programs
        seen = await self._seen(subtask, surroundings)
        self.listing, since = "", ""
        if self.heuristics.listing:
            self.listing = _listing(subtask, seen) if small else _without_long_tree(subtask)
            since = "" if small else _since(self.listing, subtask, seen)
        named = "" if seen is not None else subtask.named_files
        self.shown = (named if small and self.heuristics.brief and self.listing else "") or self.listing
        segments = {
            Segment.AGENT_SKILLS: "\n".join(line for spec in self.specs for line in spec.offers),
            Segment.CONSTRAINTS: prohibitions(subtask.must_not),
            Segment.PROJECT_GUIDE: subtask.guide if seen is None else seen.guide,
            Segment.CAUTIONS: self._caution(subtask, seen),
            Segment.ENVIRONMENT: "" if small else today_is(at),
            Segment.SURROUNDINGS: self.shown,
            Segment.TASK: "" if small else subtask.request,
            Segment.CONTEXT: "\n\n".join(
                filter(None, (since, subtask.given if small else subtask.context, _said(subtask)))
            ),
            Segment.SUBTASK: _assignment(subtask, small=small),
        }
        described = tool_segments((*self.specs, *(() if simple else in_text(own))), programs_apart=simple)
        opening = self.asker.opening(CONTRACT, segments, described, simple=simple, images=subtask.images)
        return opening, None if seen is None else Glance(surroundings=seen.listing, heads=seen.heads)

    def correction(self, correction: CorrectionSignal, last: ToolCall | None) -> str:
        """Describe the problem with the last answer. A small model is also shown the whole listing, if its first
        message contained only a part of it."""
        told = [f"Not accepted: {correction.what_was_wrong.strip()}", correction.what_to_do.strip()]
        if self.shown != self.listing:
            told.append(f"Files here:\n{self.listing}")
            self.shown = self.listing
        if self.asker.known.small and self.heuristics.other_language:
            other = other_language(self.specs, "shell" if last is None else last.tool)
            told.append(program_in(other) if other else "")
        return "\n".join(filter(None, told))

    async def _seen(self, subtask: SubTask, surroundings: SurroundingsSource) -> Surroundings | None:
        """Look at the files again if other parts of the task may have changed them since the plan."""
        if not (self.heuristics.listing and subtask.begun):
            return None
        return await surroundings.look(subtask.intent)

    def _caution(self, subtask: SubTask, seen: Surroundings | None) -> str:
        """Describe the changes that need the user's approval, or warn that changes would need it if none was made
        yet."""
        if seen is not None and (pending := prepared(seen.classes, self.unasked)):
            return pending
        only_reads = any(spec.name == subtask.preferred_tool and not spec.writes for spec in self.specs)
        return "" if self.asker.known.small or only_reads else beforehand(self.unasked)


def _listing(subtask: SubTask, seen: Surroundings | None) -> str:
    """Return the current listing of the disk, and the changes that the task has made."""
    return subtask.surroundings if seen is None else "\n".join(filter(None, (seen.listing, *_done(seen))))


def _without_long_tree(subtask: SubTask) -> str:
    """Return the first listing, without a long tree if the plan or the request names files."""
    begins = bool(subtask.named_files or subtask.first_calls)
    is_long = len(subtask.surroundings) - len(subtask.heads) > _LONG_TREE
    return (subtask.named_files or subtask.heads) if begins and is_long else subtask.surroundings


def _since(listing: str, subtask: SubTask, seen: Surroundings | None) -> str:
    """Return the changes that the task has made since the listing, and the parts of files that the listing lacks or
    shows differently."""
    shown = beyond(listing, subtask.heads if seen is None else seen.heads)
    files = (f"Files as they are now:\n{shown}",) if shown else ()
    return "\n".join((*(() if seen is None else _done(seen)), *files))


def _done(seen: Surroundings) -> Iterator[str]:
    here = "your subtask" if seen.earlier else "this task"
    done = {"this task before your subtask": seen.earlier, f"{here} so far": seen.changed}
    yield from (f"Done in {where}:\n{what}" for where, what in done.items() if what)


def _said(subtask: SubTask) -> str:
    """Return the messages that the user wrote to the running task before this subtask began."""
    return "\n".join(f"The user wrote meanwhile: {text}" for text in subtask.said)


def _assignment(subtask: SubTask, *, small: bool) -> str:
    """Write the intent and the success criteria. Texts that are already elsewhere in the prompt are not
    repeated."""
    above = (subtask.intent,) if small else (subtask.intent, subtask.request)
    above_all = not small and subtask.intent == subtask.request and len(subtask.intent) > _REPEATED
    intent = _ALL if above_all else subtask.intent
    intent = f"{intent}\n{_PART}" if subtask.part and not small else intent
    told = (criterion.text for criterion in subtask.success_criteria if criterion.text not in above)
    criteria = "\n".join(f"- {text}" for text in told)
    preferred = f"\nSuggested tool: {subtask.preferred_tool}" if subtask.preferred_tool else ""
    return f"{intent}{preferred}" + (f"\nIt is done when:\n{criteria}" if criteria else "")
