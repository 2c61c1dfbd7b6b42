"""Run shell and Python commands in the workspace, and continue slow ones as processes.

Approval is not needed, because the commands change only the task's workspace and not the user's files. Reference:
SPEC section 8.

shell, python ─► WorkspaceCommands.run ─► Workspace.start ─► ended in time: its end, output and changes
                                                          └► continues as a process: `process` waits, reads, stops
"""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path

from artoo.contracts.changes import Trait
from artoo.contracts.confirmation import ConfirmationRequest
from artoo.contracts.execution import OUTPUT_KEPT, CallEffects, CallStatus
from artoo.ports import workspace as ports
from artoo.ports.printing import unheard
from artoo.ports.workspace import Ended, Workspace
from artoo.tools.approval.gate import Gate
from artoo.tools.approval.network_consent import Network, network_refusal
from artoo.tools.core.call_changes import CallChanges, Changed
from artoo.tools.core.command_runner import Command, meant_changes, outcome_of, printed_outcome
from artoo.tools.core.live_output import Printing, printing_of
from artoo.tools.core.processes import OutputForwarder, Processes, Tracked, ended_or_asking
from artoo.tools.core.tool import Outcome
from artoo.tools.files.unified_diff import plain
from artoo.tools.resume.in_flight import current_act, current_subtask, goes_out
from artoo.words.catalogue import word
from artoo.words.question import command_lines

_START_SECONDS = 0.3
"""Number of seconds for which a background start is watched. A command that cannot run at all fails within this
time."""
_READ_ONLY = os.strerror(errno.EROFS)
_ACROSS = os.strerror(errno.EXDEV)
# Without privileges an overlay cannot record the origin of a directory, so it may refuse to rename one.
_NO_RENAME = (
    "a directory that was there before the task cannot be renamed in one step here; mv and shutil.move can move it,"
    " and instead of git mv: mv, then git add -A"
)


@dataclass(frozen=True, slots=True)
class WorkspaceCommands:
    """Runs commands in a workspace.

    `gate` asks about hosts, and about commands that can run only outside of the sandbox. `printing` shows their
    output while a call waits for them. `kept`: number of characters of an output that a record keeps.
    """

    workspace: Workspace
    gate: Gate = field(default_factory=Gate)
    network: Network = field(default_factory=Network)
    processes: Processes = field(default_factory=Processes)
    changes: CallChanges | None = None
    printing: Printing | None = None
    kept: int = OUTPUT_KEPT

    async def run(self, command: Command) -> Outcome:
        """Start a command and wait for its end, up to its time limit. The outcome contains the changes that were
        made meanwhile.

        Raises SandboxError if the command cannot be confined or started. Cancellation stops the command.
        """
        hosts = command.network.listed
        if hosts:
            refused = await network_refusal(self.gate, command.by, command.text, command.network)
            if refused is not None:
                return refused
        if (
            self.workspace.backend == "none"
            and (refused := await self._unconfined_refusal(command, ())) is not None
        ):
            return refused
        await goes_out(CallEffects.OUTSIDE if hosts or self.workspace.backend == "none" else CallEffects.STAGED)
        outcome = await self._started(command, unconfined=self.workspace.backend == "none")
        if outcome.status is CallStatus.REFUSED and self.workspace.backend not in ("bubblewrap", "none"):
            refused = await self._unconfined_refusal(command, (outcome.reason or "",))
            if refused is None:
                await goes_out(CallEffects.OUTSIDE)
                return await self._started(command, unconfined=True)
            return replace(refused, output=outcome.output, error_output=outcome.error_output)
        return outcome

    async def _started(self, command: Command, *, unconfined: bool) -> Outcome:
        """Start a command and wait for it. Return its end, or its progress if it continues."""
        hearing, listener = self.network.hearing(), OutputForwarder()
        wanted = ports.Command(
            argv=command.argv,
            env=command.env,
            keep_env=frozenset(command.network.credentials),
            interactive=command.pty,
            pty=command.pty,
            hosts=command.network.listed,
            on_connection=hearing,
            on_output=listener,
            unconfined=unconfined,
        )
        attributed = self.changes or CallChanges(self.workspace)
        call = await attributed.begin(current_subtask())
        try:
            watched = nullcontext(unheard) if command.background else printing_of(self.printing, current_act())
            # The listener is set before the start, because the command may print something before `start` returns.
            with watched as listener.heard:
                process = await self.workspace.start(wanted)
                tracked = Tracked(process, command, call.subtask, hearing)
                try:
                    ended = await self._waited(tracked)
                except BaseException:
                    await process.stop()
                    raise
            if ended is None or command.background or self._is_cut(ended):
                self.processes.add(tracked, listener)
            changed = await attributed.end(call)
        except BaseException:
            attributed.abandon(call)
            raise
        outcome = self.told(tracked, ended, changed)
        if ended is None:
            tracked.shown = outcome.total_bytes or 0
        return outcome

    async def _waited(self, tracked: Tracked) -> Ended | None:
        command = tracked.command
        if command.background:
            return await tracked.process.wait(_START_SECONDS)
        seconds = self.processes.seconds(command.seconds)
        return await ended_or_asking(tracked.process, seconds, asks=command.pty)

    def told(self, tracked: Tracked, ended: Ended | None, changed: Changed) -> Outcome:
        """Return the outcome of a command that has ended or that continues, for the record of the call."""
        command = tracked.command
        read_on = f"read it with process: id {tracked.id}, action read, offset N"
        if ended is None:
            outcome = self._still_running(tracked, read_on)
        else:
            outcome = self._explained(outcome_of(ended, self.kept, read_on))
        if ended is not None:
            tracked.told = True
        denied = () if ended is None else ended.denied_hosts
        outcome = tracked.hearing.explained(outcome, command.network, denied)
        outcome = replace(
            outcome,
            changes=meant_changes(changed.changes),
            bookkeeping=any(change.has(Trait.GIT_BOOKKEEPING) for change in changed.changes),
            overlapped=changed.overlapped,
        )
        return outcome if ended is None else command.judged(outcome)

    def _is_cut(self, ended: Ended) -> bool:
        """Check whether a record would lack a part of a command's output. If so, `process` must be able to read
        this output later."""
        return ended.stdout.total_bytes > self.kept or ended.stderr.total_bytes > self.kept // 2

    def _still_running(self, tracked: Tracked, read_on: str) -> Outcome:
        process, command = tracked.process, tracked.command
        if command.background:
            status, said = CallStatus.OK, f"it runs in the background as process {process.id}"
        elif process.waits_for_input:
            status = CallStatus.RUNNING
            said = f'it waits for input as process {process.id}: use process with action "write"'
        else:
            status = CallStatus.RUNNING
            said = f"it goes on as process {process.id}: use process to wait for it, read on or stop it"
        outcome = printed_outcome(process.printed, status=status, reason=said, kept=self.kept, read_on=read_on)
        return replace(outcome, process=process.id)

    def _explained(self, ended: Outcome) -> Outcome:
        """Add an explanation to the outcome of a command that failed because the sandbox does not allow a write or
        a rename."""
        if ended.status is not CallStatus.ERROR:
            return ended
        hints = [_NO_RENAME] if _ACROSS in ended.error_output else []
        if _READ_ONLY in f"{ended.error_output}\n{ended.output}":
            roots = self.workspace.roots
            listed = ", ".join(map(str, dict.fromkeys((roots.home, roots.project, roots.workspace))))
            hints.append(f"commands write in {listed} and /tmp, and nowhere else")
        return replace(ended, reason="; ".join(filter(None, (ended.reason, *hints))) or None)

    async def _unconfined_refusal(self, command: Command, notes: Sequence[str]) -> Outcome | None:
        """Ask about a command that can run only outside of the sandbox, with all of the user's rights. Return None
        if it may run."""
        refusal = await self.gate.refusal(self._question(command, notes))
        if refusal is None:
            return None
        return Outcome(
            status=CallStatus.REFUSED,
            reason=refusal.reason,
            dropped=(f"{Path(command.argv[0]).name}: {plain(command.text)}",),
            withheld_by=refusal.by,
        )

    def _question(self, command: Command, notes: Sequence[str]) -> ConfirmationRequest:
        folder, language = str(self.workspace.roots.project), self.gate.language
        warning = word("its changes cannot be listed beforehand, nor undone", language)
        return self.gate.question(
            ("unconfined", folder, *command.argv),
            word("run it for real, without a sandbox", language),
            (f"[{folder}]", *command_lines(command.text), warning, *filter(None, notes)),
            (("unconfined", command.text),),
        )
