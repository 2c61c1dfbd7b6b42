"""The settings of hooks and notifications."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from artoo.settings.sections import Number, Section


def _as_hook(given: object) -> object:
    """Read a command alone as a hook with that command."""
    return {"command": given} if isinstance(given, str) else given


def _as_list(given: object) -> object:
    """Read one command as a list of one."""
    return [given] if isinstance(given, str) else given


class Hook(Section):
    """A command that is run with JSON on its standard input, in the project, as the user.

    `tools`: the tools that it is run for, as patterns such as `mcp:*`; empty: all. `seconds`: when it is stopped.
    """

    command: str = Field(min_length=1)
    tools: tuple[str, ...] = ()
    seconds: Number = Field(default=60.0, gt=0, le=600)


_Listed = Annotated[tuple[Annotated[Hook, BeforeValidator(_as_hook)], ...], BeforeValidator(_as_list)]


class Hooks(Section):
    """The hooks of each moment, in the order in which they run."""

    before_tool: _Listed = ()
    after_tool: _Listed = ()
    before_apply: _Listed = ()
    task_end: _Listed = ()

    def at(self, moment: Moment) -> tuple[Hook, ...]:
        """Return the hooks of one moment."""
        return {
            "before_tool": self.before_tool,
            "after_tool": self.after_tool,
            "before_apply": self.before_apply,
            "task_end": self.task_end,
        }[moment]


Moment = Literal["before_tool", "after_tool", "before_apply", "task_end"]
MOMENTS: tuple[Moment, ...] = ("before_tool", "after_tool", "before_apply", "task_end")


class Notify(Section):
    """The ways in which the user learns that a task needs them or has ended. Everything is off by default.

    `bell` and `osc9` write to the terminal in which the task runs; `command` is given JSON on its standard input;
    `webhook` is sent the same JSON. `events`: which are told; `after_seconds`: ends of shorter tasks are not.
    """

    bell: bool = False
    osc9: bool = False
    command: str | None = Field(default=None, min_length=1)
    webhook: str | None = Field(default=None, pattern=r"^https?://[^\s@]+$")
    events: tuple[Literal["needs_you", "ended"], ...] = ("needs_you", "ended")
    after_seconds: Number = Field(default=0.0, ge=0, le=86_400)

    @property
    def wanted(self) -> bool:
        """True if some way is set up."""
        return self.bell or self.osc9 or self.command is not None or self.webhook is not None
