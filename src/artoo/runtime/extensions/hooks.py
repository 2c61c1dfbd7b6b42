"""Run the hooks of a task before and after tools, apply and end, with exit code 2 as refusal.

These are the user's own hooks, and those hooks of the project whose exact content the user has approved.

before_tool ─► exit 2: the call is refused      after_tool ─► exit 2: the model reads the message
before_apply ─► exit 2: the changes are pending task_end ─► gets the result
"""

from __future__ import annotations

import fnmatch
import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from artoo.contracts.confirmation import ConfirmationRequest
from artoo.contracts.errors import ConfigurationError, SandboxError
from artoo.contracts.solution import FinalResult
from artoo.runtime.config.extensions import MOMENTS, Hook, Hooks, Moment
from artoo.runtime.extensions.commands import run_with_json
from artoo.runtime.extensions.project_files import ProjectFile, hooks_file, hooks_in
from artoo.tools.approval.gate import Gate
from artoo.tools.core.middleware import Run, ToolUse, refused
from artoo.tools.core.to_thread import in_thread
from artoo.tools.core.tool import Outcome

logger = logging.getLogger(__name__)

BLOCKS = 2
"""The exit code by which a hook refuses the operation."""
_OUTPUT = 20_000
"""Number of characters of a call's output that are passed to a hook."""


@dataclass(slots=True)
class TaskHooks:
    """Runs the hooks of one task. `mine` are the hooks of the user. The hooks of the project are added after they
    are approved."""

    mine: Hooks
    home: Path
    project: Path
    task_id: str
    request: str = ""
    agreed: ProjectFile | None = None
    theirs: Hooks = field(default_factory=Hooks)

    @property
    def around_tools(self) -> bool:
        """True if there may be hooks for tool calls, so that the calls must be wrapped."""
        own = bool(self.mine.before_tool or self.mine.after_tool)
        return own or hooks_of_project(self.project)

    async def equip(self, gate: Gate) -> None:
        """Add the hooks of the project if they are approved. The user is asked, unless exactly this content was
        decided before."""
        from artoo.runtime.app.skill_selection import Agreed

        try:
            file = await in_thread(hooks_file, self.project)
            theirs = Hooks() if file is None else hooks_in(file)
        except ConfigurationError as error:
            logger.warning("the project's hooks are not run: %s", error)
            return
        if file is None:
            return
        answers = Agreed(self.home)
        said = await in_thread(answers.of, file)
        if said is None:
            refusal = await gate.refusal(_question(file, theirs, gate))
            said = refusal is None
            if said or (refusal and refusal.by == "person"):
                await in_thread(lambda: answers.note((file,), yes=bool(said)))
        if said:
            self.agreed, self.theirs = file, theirs

    def adopt(self) -> None:
        """Add the hooks of the project if they were approved before. The user is not asked. Blocking."""
        from artoo.runtime.app.skill_selection import Agreed

        try:
            file = hooks_file(self.project)
            if file is not None and Agreed(self.home).of(file):
                self.agreed, self.theirs = file, hooks_in(file)
        except ConfigurationError as error:
            logger.warning("the project's hooks are not run: %s", error)

    async def around(self, use: ToolUse, run: Run) -> Outcome:
        """Run a tool call, with the hooks before and after it. Implements Middleware."""
        known = {"tool": use.tool, "arguments": dict(use.arguments), "subtask_id": use.subtask_id}
        hooked = bool(self._listed("before_tool", use.tool))
        if hooked and (why := await in_thread(lambda: self._refusal("before_tool", known, use.tool))):
            return refused(f"a hook refused it: {why}")
        outcome = await run(use)
        if self._listed("after_tool", use.tool):
            ended = {
                "status": outcome.status.value,
                "exit_code": outcome.exit_code,
                "output": outcome.output[:_OUTPUT],
                "error_output": outcome.error_output[:_OUTPUT],
                "reason": outcome.reason,
            }
            if said := await in_thread(lambda: self._refusal("after_tool", {**known, **ended}, use.tool)):
                told = "\n".join(filter(None, (outcome.error_output, f"hook: {said}")))
                outcome = replace(outcome, error_output=told)
        return outcome

    def before_apply(self, paths: Sequence[str]) -> None:
        """Run the hooks for the moment before changes are applied. Blocking. Raises SandboxError if a hook
        refuses."""
        if why := self._refusal("before_apply", {"paths": list(paths)}):
            raise SandboxError(f"a hook refused it: {why}")

    async def ended(self, result: FinalResult) -> None:
        """Run the hooks for the end of the task."""
        if not self._listed("task_end"):
            return
        known = {
            "directive": result.directive.value,
            "stopped_by": result.stopped_by and result.stopped_by.value,
            "assurance": result.assurance.value,
            "output": result.output,
            "changes": result.changes.state,
        }
        await in_thread(lambda: self._refusal("task_end", known))

    def _listed(self, moment: Moment, tool: str = "") -> list[tuple[Hook, bool]]:
        """Return the hooks of a moment. The flag of each is true if the hook belongs to the project."""
        listed = [(each, of is self.theirs) for of in (self.mine, self.theirs) for each in of.at(moment)]
        return [pair for pair in listed if not pair[0].tools or _is_for(pair[0], tool)]

    def _refusal(self, moment: Moment, known: Mapping[str, object], tool: str = "") -> str:
        """Run the hooks of a moment in order, until one refuses. Return its message, or "" if none refuses."""
        given = {"event": moment, "task_id": self.task_id, "project": str(self.project), "request": self.request}
        for hook, is_projects in self._listed(moment, tool):
            if is_projects and not self._unchanged():
                return "the project's hooks have changed since they were approved; the next task asks about them"
            ran = run_with_json(hook.command, {**given, **known}, self.project, hook.seconds)
            if ran.code == BLOCKS:
                return ran.message or hook.command
            if ran.code != 0:
                how = ran.message if ran.code is None else f"exit code {ran.code}: {ran.message}"
                logger.warning("the %s hook %r failed: %s", moment, hook.command, how)
        return ""

    def _unchanged(self) -> bool:
        """True if the hooks of the project are still exactly those that were approved."""
        try:
            now = hooks_file(self.project)
        except ConfigurationError:
            return False
        return now is not None and self.agreed is not None and now.digest == self.agreed.digest


def hooks_of_project(project: Path) -> bool:
    """True if the project contains hooks, whether they are approved or not."""
    from artoo.runtime.extensions.project_files import HOOKS_FILE

    return (project / HOOKS_FILE).is_file()


def hook_lines(hooks: Hooks) -> Iterator[str]:
    """Yield a line of text for each hook, for questions and lists."""
    for moment in MOMENTS:
        for hook in hooks.at(moment):
            tools = f" [{', '.join(hook.tools)}]" if hook.tools else ""
            yield f"{moment}{tools} $ {hook.command}"


def _is_for(hook: Hook, tool: str) -> bool:
    return any(fnmatch.fnmatchcase(tool, pattern) for pattern in hook.tools)


def _question(file: ProjectFile, hooks: Hooks, gate: Gate) -> ConfirmationRequest:
    return gate.question(
        ("hooks", file.digest),
        f"hooks of the project ({file.digest[:12]})",
        hook_lines(hooks),
        (("start", str(file.folder)),),
        str(file.folder),
    )
