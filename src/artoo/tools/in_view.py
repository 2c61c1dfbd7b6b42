"""Commands and files in a task's view: nothing is asked, nothing is the person's yet (SPEC section 8).

shell, python ────────► CommandsInView ──► View.run      what a command did stays in the view
write_file, edit_file ► FilesInView ─────► View.write
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from artoo.contracts.changes import Change, Trait
from artoo.contracts.confirmation import AskedAct, ConfirmationRequest
from artoo.contracts.errors import SandboxError, ToolError
from artoo.contracts.execution import CallEffects, CallStatus
from artoo.ports.printing import Heard
from artoo.ports.sandbox import ActNote, Limits, Roots
from artoo.ports.world import Files, Program, View, ViewRun
from artoo.tools.commands import Command, meant_changes, outcome_of
from artoo.tools.gate import Gate, digest_of_act
from artoo.tools.gate_words import word
from artoo.tools.looked_at import LookedAt
from artoo.tools.network import Hearing, Network, network_refusal
from artoo.tools.noted import noting
from artoo.tools.paths import closed_reason, shown
from artoo.tools.printing import Printing, printing_of
from artoo.tools.text_file import open_plain
from artoo.tools.threads import in_thread
from artoo.tools.tool import Outcome
from artoo.tools.under_way import current_act, goes_out
from artoo.tools.unified import plain
from artoo.workspace.changes.path_class import Places

MAX_EDITED_BYTES = 4 << 20
"""A file that is larger is not edited."""
_READ_ONLY = os.strerror(errno.EROFS)
_SOMEBODY_ELSES = (
    (os.strerror(errno.EOVERFLOW),),
    (os.strerror(errno.EINVAL), "changing group of "),
    (os.strerror(errno.EINVAL), "changing ownership of "),
)
"""What stands in one line where a command would write or give away what is another user's or another group's: in
the user namespace of a view there is one of each."""
_ONE_GROUP = (
    "commands here know one user and one group, yours and your first: what belongs to another they cannot write"
    " in place or give away, nor can they make anything in a directory that hands its group on; write_file writes"
    " it, and where the directory is yours a command can put a new file in its place (cp, then mv)"
)
_IN_REPOSITORY = re.compile(r"(/[^'\"]*?/\.git)(?![\w.-])")


@dataclass(frozen=True, slots=True)
class CommandsInView:
    """Runs commands in a view. Implements `CommandRunner`. `gate`: for commands that can only run for real.
    `printing` shows what they print while they run."""

    view: View
    gate: Gate = field(default_factory=Gate)
    network: Network = field(default_factory=Network)
    limits: Limits = field(default_factory=Limits)
    printing: Printing | None = None

    async def run(self, command: Command) -> Outcome:
        """Raises SandboxError when the command cannot be contained; then nothing of it is in the view."""
        hearing = self.network.hearing()
        with printing_of(self.printing, current_act()) as printed:
            return hearing.explained(await self._run(command, hearing, printed), command.network)

    async def _run(self, command: Command, hearing: Hearing, printed: Heard) -> Outcome:
        note = noting()

        def noted(run: ViewRun) -> ActNote | None:
            return note(command.judged(hearing.explained(self._ended(run, program), command.network)))

        program = Program(
            argv=command.argv,
            limits=replace(self.limits, wall_seconds=command.wall_seconds),
            stdin=command.stdin,
            env=command.env,
            hosts=command.network.listed,
            heard=hearing,
            printed=printed,
            keep_env=frozenset(command.network.credentials),
            note=noted,
        )
        if program.hosts:
            name = "shell" if program.argv[0] == "bash" else Path(program.argv[0]).name
            refused = await network_refusal(self.gate, name, program.argv[-1], command.network)
            if refused is not None:
                return refused
        await goes_out(CallEffects.OUTSIDE if program.hosts else CallEffects.STAGED)
        run = await self.view.run(program)
        if run.needs_confirmation:
            return await self._for_real(program, run)
        return self._ended(run, program)

    def _ended(self, run: ViewRun, program: Program) -> Outcome:
        ended = _ended(run, program)
        if _is_somebody_elses(ended.error_output):
            ended = replace(ended, reason="; ".join(filter(None, (ended.reason, _ONE_GROUP))))
        complaints = [
            line for line in (ended.error_output + "\n" + ended.output).splitlines() if _READ_ONLY in line
        ]
        roots = (self.view.roots.home, self.view.roots.project, self.view.roots.workspace)
        outermost = tuple(
            dict.fromkeys(root for root in roots if not any(other in root.parents for other in roots))
        )
        repository = _repository_outside(complaints, outermost)
        if not complaints or (ended.status is CallStatus.OK and repository is None):
            return ended
        reason = f"commands write in {', '.join(map(str, outermost))} and /tmp, and nowhere else"
        if repository is not None:
            reason += f"; git keeps what is staged and committed here in {repository}, so it can only be read"
        return replace(ended, reason="; ".join(filter(None, (ended.reason, reason))))

    async def _for_real(self, program: Program, tried: ViewRun) -> Outcome:
        """Where there is no view to run in, the command itself is asked about; agreed to, it has all rights."""
        text = program.argv[-1]
        refusal = await self.gate.refusal(self._question(program, tried))
        if refusal is not None:
            return replace(
                outcome_of(tried, program.limits),
                status=CallStatus.REFUSED,
                reason=refusal.reason,
                dropped=(f"{Path(program.argv[0]).name}: {plain(text)}",),
                withheld_by=refusal.by,
            )
        await goes_out(CallEffects.OUTSIDE)
        run = await self.view.run(replace(program, unconfined=True))
        return _ended(run, program)

    def _question(self, program: Program, tried: ViewRun) -> ConfirmationRequest:
        language = self.gate.origins.language
        folder = str(self.view.roots.project)
        return ConfirmationRequest(
            digest=digest_of_act("unconfined", folder, *program.argv),
            title=word("run it for real, without a sandbox", language),
            details=tuple(_details(folder, program.argv[-1], tried, language)),
            acts=(AskedAct(verb="unconfined", target=program.argv[-1]),),
            language=language,
        )


def _is_somebody_elses(complaint: str) -> bool:
    lines = complaint.splitlines() if os.geteuid() != 0 else ()
    return any(all(part in line for part in each) for line in lines for each in _SOMEBODY_ELSES)


def _repository_outside(complaints: Sequence[str], roots: Sequence[Path]) -> Path | None:
    """git's own directory, where it lies elsewhere than a view's roots (a subdirectory of a repository, a linked
    worktree, a submodule) and git could not write there: in the middle of a script that may go on all the same.
    """
    found = (Path(match.group(1)) for line in complaints if (match := _IN_REPOSITORY.search(line)))
    return next((each for each in found if not any(each.is_relative_to(root) for root in roots)), None)


def _ended(run: ViewRun, program: Program) -> Outcome:
    kept_by_git = any(change.has(Trait.GIT_BOOKKEEPING) for change in run.changes)
    return replace(outcome_of(run, program.limits), changes=meant_changes(run.changes), bookkeeping=kept_by_git)


def _details(folder: str, text: str, tried: ViewRun, language: str) -> Iterator[str]:
    yield f"[{plain(folder)}]"
    for number, line in enumerate(text.splitlines() or [""]):
        yield f"$ {plain(line)}" if number == 0 else f"  {plain(line)}"
    yield word("its changes cannot be listed beforehand, nor undone", language)
    yield from (plain(note) for note in tried.notes)


@dataclass(frozen=True, slots=True)
class FilesInView:
    """Reads and writes whole files in a view. Implements `FileWriter`."""

    view: View
    places: Places
    looked: LookedAt = field(default_factory=LookedAt)

    async def write(
        self, path: Path, content: bytes, shows: str = "", remark: str = "", *, anew: bool = False
    ) -> Outcome:
        """See FileWriter. Raises ToolError when nothing can be written there."""
        roots, name = self.view.roots, shown(path, self.view.roots)
        refusal = await in_thread(out_of_reach, self.view.files, path, roots, self.places)
        if refusal is not None:
            return Outcome(status=CallStatus.REFUSED, reason=refusal)
        if anew and (why := await in_thread(self._why_not_replaced, path)):
            raise ToolError(f"{name} {why}")
        await goes_out(CallEffects.STAGED)
        note = noting()

        def ended(changes: tuple[Change, ...]) -> Outcome:
            if all(change.has(Trait.TIMES_ONLY) for change in changes):
                return Outcome(
                    output=f"{name} is already there with exactly this content", ran="nothing was written"
                )
            last, said = changes[-1], [_measure(content), remark]
            said += [f"{last.size_before} bytes before"] if last.size_before is not None else []
            output = shows or f"{_verb(last)} {name} ({'; '.join(filter(None, said))})"
            return Outcome(output=output, changes=meant_changes(changes))

        try:
            return ended(await self.view.write(path, content, lambda changes: note(ended(changes))))
        except SandboxError as error:
            raise ToolError(f"{name} was not written: {error}") from error

    async def read(self, path: Path) -> bytes | None:
        """The whole content of a file that is to be edited; None when nothing is there. Raises ToolError."""
        return await in_thread(self._read, path)

    def _why_not_replaced(self, path: Path) -> str:
        files = self.view.files
        real = files.resolve(path)
        return self.looked.why_not_replaced(real, files.at(real))

    def _read(self, path: Path) -> bytes | None:
        files, name = self.view.files, shown(path, self.view.roots)
        refusal = out_of_reach(files, path, self.view.roots, self.places)
        if refusal is not None:
            raise ToolError(refusal)
        place = files.at(files.resolve(path))
        if place is None:
            return None
        try:
            with open_plain(place) as (file, size):
                if size > MAX_EDITED_BYTES:
                    raise ToolError(f"{name} has {size} bytes; only files of up to {MAX_EDITED_BYTES} are edited")
                return file.read(MAX_EDITED_BYTES + 1)
        except OSError as error:
            raise ToolError(f"{name} cannot be read: {error.strerror}") from error


def out_of_reach(files: Files, path: Path, roots: Roots, places: Places) -> str | None:
    """Why tools may not touch what a path leads to; None when they may. Decided on the real path, after links."""
    try:
        real = files.resolve(path)
    except OSError as error:
        return f"{shown(path, roots)} cannot be used: {error.strerror}"
    return closed_reason(path, roots) if places.is_closed(os.fsencode(real)) else None


def _verb(change: Change) -> str:
    return "created" if change.before is None else "replaced"


def _measure(content: bytes) -> str:
    lines = content.count(b"\n") + (not content.endswith(b"\n") and bool(content))
    return f"{len(content)} bytes, lines: {lines}"
