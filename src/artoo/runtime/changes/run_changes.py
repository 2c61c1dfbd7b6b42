"""The `changes` of a library's result, with a summary and the operations diff, apply and discard."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import TYPE_CHECKING, Self

from pydantic import Field, PrivateAttr

from artoo.contracts.changes import printable_path
from artoo.contracts.errors import ConfigurationError
from artoo.contracts.settling import Review, Settled
from artoo.contracts.solution import FinalResult
from artoo.contracts.text import shortened
from artoo.runtime.app.run_options import listed
from artoo.runtime.config.model import Config

LONGEST_SUMMARY = 2_000
"""Number of characters of a summary that are kept for the next request."""

if TYPE_CHECKING:
    from artoo.contracts.request import Turn
    from artoo.runtime.changes.pending_changes import Pending


class Changes(Settled):
    """The `FinalResult.changes` of a library's run. Pending changes can be reviewed, applied and discarded, now or
    later.

    In another process, `Artoo.pending` finds the pending changes again.
    """

    _config: Config | None = PrivateAttr(default=None)
    _task_id: str = PrivateAttr(default="")

    @classmethod
    def of(cls, settled: Settled, task_id: str, config: Config) -> Self:
        """Return the facts in `settled`, together with the task's id and the configuration that names its home."""
        made = cls.model_construct(**vars(settled))
        made._config, made._task_id = config, task_id
        return made

    async def diff(self) -> Review:
        """Return all changes against the present files, with diffs of small texts, and the conflicts.

        Raises ConfigurationError if the task has no pending changes, and SandboxError if another process is using
        them.
        """
        return await (await self._pending()).diff()

    async def apply(self, *paths: str | Path, rest: bool = False) -> Settled:
        """Apply all changes, or only these paths (a directory includes all in it) and the changes they need.

        A str is a path as `diff` shows it, or a path relative to the task's project. A relative Path is relative to
        the project too. If the user has changed the same paths meanwhile, nothing is applied, unless paths are
        named or `rest` is true. `rest` applies everything that has no conflict. Raises the errors of `diff`. Also
        raises SandboxError if the system refuses, or if a path is empty or not part of the changes; nothing is
        applied then.
        """
        listed("apply", paths, str, Path)
        chosen = [path if isinstance(path, str) else printable_path(os.fsencode(path)) for path in paths]
        return await (await self._pending()).apply(chosen or None, rest=rest)

    async def discard(self) -> Settled:
        """Delete the changes. No file of the user is modified. Sent data cannot be recalled. Raises the errors of
        `diff`."""
        return await (await self._pending()).discard()

    async def _pending(self) -> Pending:
        from artoo.runtime.changes.find_pending import find_pending

        if self._config is None:
            raise ConfigurationError(
                "these changes come from a log; Artoo.pending lists the changes that are still pending"
            )
        return await asyncio.to_thread(find_pending, self._config, self._task_id)


class RunResult(FinalResult):
    """The result of `Artoo.run`. It is the FinalResult, whose `changes` can be reviewed, applied and discarded."""

    changes: Changes = Field(default_factory=Changes)  # pyright: ignore[reportIncompatibleVariableOverride] # frozen

    @classmethod
    def of(cls, result: FinalResult, config: Config) -> Self:
        """Return the same result, with the configuration that names the home of the task."""
        changes = Changes.of(result.changes, result.task_id, config)
        return cls.model_construct(None, **{**vars(result), "changes": changes})

    def turn(self, request: str) -> Turn:
        """Return the request and the result as one exchange for the `history` of later requests. It can be saved as
        JSON (`model_dump_json`)."""
        from artoo.contracts.request import Turn
        from artoo.words.result import result_words

        said = result_words(self.language).plain(self, told=False)
        return Turn(input=request, summary=shortened(said, LONGEST_SUMMARY), task_id=self.task_id)
