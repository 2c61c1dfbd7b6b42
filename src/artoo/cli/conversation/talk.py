"""The settings of a conversation (approval mode, plan, model), its cost, `/sessions`, and `!` shell commands."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from artoo.cli.display.sanitize import asked_line, show
from artoo.cli.display.screen import show_lines
from artoo.cli.display.symbols import DOT, cost_line
from artoo.contracts.errors import ConfigurationError
from artoo.contracts.settling import ApplyMode
from artoo.contracts.solution import Cost, FinalResult
from artoo.ports.model import Tier
from artoo.runtime.app.models import served_models
from artoo.runtime.config.endpoints import endpoint
from artoo.runtime.config.model import Config
from artoo.runtime.task.conversations import Session, latest_sessions
from artoo.words.catalogue import Catalogue

if TYPE_CHECKING:
    from artoo.runtime.app.artoo import Artoo

_SESSIONS = 20
_COUNTS = tuple(name for name in Cost.model_fields if name != "money")


@dataclass(slots=True)
class Talk:
    """The settings of a conversation, which the user changes by slash commands. None means the configured value."""

    config: Config
    text: Catalogue
    mode: ApplyMode | None = None
    model: str | None = None
    plan: bool = False
    costs: list[Cost] = field(default_factory=list[Cost])

    def status(self) -> str:
        """Return the line below the prompt. It has the model, the project, the mode, and the number of used
        tokens."""
        mode = self.mode or self.config.apply
        spent = sum(each.prompt_tokens + each.completion_tokens for each in self.costs)
        parts = (self._model(), Path.cwd().name, f"apply: {mode.value}", "plan first" if self.plan else "")
        used = self.text.count("{count} token", "{count} tokens", spent) if spent else ""
        return f" {DOT.join(part for part in (*parts, used) if part)}"

    def ended(self, result: FinalResult) -> None:
        """Add the cost of a request that has ended."""
        self.costs.append(result.cost)

    def set_mode(self, arguments: Sequence[str]) -> None:
        """Set the mode, and show it. The mode decides which changes are applied without approval. Raises
        ConfigurationError."""
        if arguments:
            try:
                self.mode = ApplyMode(arguments[0])
            except ValueError:
                modes = ", ".join(ApplyMode)
                raise ConfigurationError(f"{arguments[0]!r} is not a mode; the modes are: {modes}") from None
        show(f"apply: {(self.mode or self.config.apply).value}")

    def toggle_plan(self) -> None:
        """Switch on or off that plans are shown for approval before anything runs."""
        self.plan = not self.plan
        show("plans are shown before anything runs" if self.plan else "plans run at once")

    def show_cost(self) -> None:
        """Show the cost of all requests of this conversation together."""
        whole = Cost()
        for each in self.costs:
            counts = {name: getattr(whole, name) + getattr(each, name) for name in _COUNTS}
            paid = each.money if whole.money is None else whole.money
            if whole.money is not None and each.money is not None:
                paid = whole.money.model_copy(update={"amount": whole.money.amount + each.money.amount})
            whole = Cost.model_validate({**counts, "money": paid})
        requests = self.text.count("{count} request", "{count} requests", len(self.costs))
        show(f"{requests}{DOT}{cost_line(whole, self.text, rounds=0)}")

    async def show_context(self, session: Session, runtime: Artoo) -> None:
        """Show how much of this conversation the next request will contain, and the sizes of the models'
        windows."""
        size = sum(len(turn.input) + len(turn.summary) for turn in session.turns)
        told, kept = len(session.turns), len(session.exchanges)
        lines = [f"{told} of {kept} exchanges, {size:,} characters, go with the next request"]
        for tier in Tier:
            known = await runtime.model.known(tier)
            lines.append(f"{tier.value}: a window of {known.window:,} tokens")
        show_lines(lines)

    async def choose_model(self, arguments: Sequence[str]) -> bool:
        """Show the models of the configured server, or use another one from the next request on.

        Returns False if no server is configured. Raises ConfigurationError.
        """
        served = await served_models(self.config, os.environ)
        if not served:
            return False
        if len(arguments) > 1:
            raise ConfigurationError("name one model, for example: /model " + served[-1])
        if arguments:
            self.model = arguments[0]
            listed = "" if self.model in served else " (the server does not list it)"
            show(f"model: {self.model}{listed}")
        else:
            show_lines(f"{'*' if name == self._model() else ' '} {name}" for name in served)
        return True

    def _model(self) -> str:
        if self.model is not None:
            return self.model
        try:
            found = endpoint(self.config, "brain", os.environ)
        except ConfigurationError:
            return "no model"
        return "local model" if found is None else found.model


async def show_sessions(home: Path, here: Session) -> None:
    """List the latest conversations, latest first."""
    found = await asyncio.to_thread(latest_sessions, home, _SESSIONS)
    kept = [one for one in found if one.exchanges]
    marks = ("*" if one.name == here.name else " " for one in kept)
    last = (asked_line(one.exchanges[-1].input) for one in kept)
    rows = zip(marks, kept, last, strict=True)
    lines = [f"{mark} {one.name}  {len(one.exchanges)}  {said}" for mark, one, said in rows]
    show_lines([*(lines or ["There is no conversation yet."]), "continue one: artoo --session NAME"])


async def run_shell(command: str) -> None:
    """Run a command that the user has typed, on this terminal and outside of any task."""
    if command.strip():
        process = await asyncio.create_subprocess_exec(os.environ.get("SHELL") or "/bin/sh", "-c", command)
        code = await process.wait()
        if code:
            show(f"exit code {code}")


def without_marks(request: str) -> str:
    """Return a request in which the `@` before the path of an existing file is removed."""

    def plain(match: re.Match[str]) -> str:
        return match[1] if Path(match[1]).exists() else match[0]

    return re.sub(r"(?<!\S)@(\S+)", plain, request)
