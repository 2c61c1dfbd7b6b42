"""The settings `hooks` (moments, tools, default timeout) and `notify` (ways, delay)."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from artoo.settings.sections import Number, Section


def _as_hook(given: object) -> object:
    """Convert a plain command, given as a text, to a hook that runs it."""
    return {"command": given} if isinstance(given, str) else given


def _as_list(given: object) -> object:
    """Convert a single command to a list."""
    return [given] if isinstance(given, str) else given


class Hook(Section):
    """A command that is run at a moment of a task, in the project, with the user's rights. It gets JSON on its
    standard input.

    `tools`: patterns of the tools for whose calls it is run, such as `mcp:*`. If it is empty, it is run for all
    tools. `seconds`: the timeout of the command.
    """

    command: str = Field(min_length=1)
    tools: tuple[str, ...] = ()
    seconds: Number = Field(default=60.0, gt=0, le=600)


_Listed = Annotated[tuple[Annotated[Hook, BeforeValidator(_as_hook)], ...], BeforeValidator(_as_list)]


class Hooks(Section):
    """The hooks of each moment, in the order in which they are run."""

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
    """The ways in which the user is notified that a task needs a decision or has ended. Everything is off by
    default.

    `bell` and `osc9` write to the terminal in which the task runs. `command` gets JSON on its standard input, and
    `webhook` is sent the same JSON. `events`: the events for which a notification is given. If a task took less
    than `after_seconds`, its end gives no notification.
    """

    bell: bool = False
    osc9: bool = False
    command: str | None = Field(default=None, min_length=1)
    webhook: str | None = Field(default=None, pattern=r"^https?://[^\s@]+$")
    events: tuple[Literal["needs_you", "ended"], ...] = ("needs_you", "ended")
    after_seconds: Number = Field(default=0.0, ge=0, le=86_400)

    @property
    def wanted(self) -> bool:
        """True if any way of notification is configured."""
        return self.bell or self.osc9 or self.command is not None or self.webhook is not None
