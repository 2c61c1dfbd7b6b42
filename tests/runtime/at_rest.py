"""The end of tasks whose workspaces are on disk already, without a sandbox."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "workspace"))
from laid_out import World

from artoo.contracts.settling import ApplyMode
from artoo.runtime.config.model import Config
from artoo.tools.settlement.settler import Settler


class _AtRest:
    """A workspace that is only closed."""

    async def close(self) -> None:
        """Lets go."""


def settler_at_rest(home: Path, *, mode: ApplyMode = ApplyMode.NEW, again: bool = False) -> Settler:
    """Return the settler of a task of the artoo in `home`."""
    return Settler(_AtRest(), home / ".artoo", "do it", mode, again=again)  # pyright: ignore[reportArgumentType]


def config(world: World) -> Config:
    """Return the configuration of that artoo."""
    return Config().at_home(world.artoo_home)


def edit(home: Path) -> None:
    """Change `a.txt` of the project."""
    (home / "project" / "a.txt").write_text("edited\n")
