"""A governed task's private copies, from its start to its archive (SPEC section 11).

<home>/layers/<board task>/<number>/
    project/  workspace/     what the task works in: a copy of the project, a workspace of its own
    layer.json               whose copies these are
    manifest.jsonl           what was there when the copies were made
    submitted/  changes.jsonl    what was handed in, frozen
    approval.json            who approved it: from then on the merge is finished, also after a crash
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import ConfigDict, ValidationError

from artoo.contracts.base import Contract
from artoo.contracts.changes import PathClass
from artoo.contracts.errors import SandboxError
from artoo.ports.sandbox import Roots
from artoo.tools.layers.copying import CopyLimits, TreeCopy
from artoo.tools.layers.manifest import write_manifest
from artoo.world.classify import Places
from artoo.world.journal import sync_directory
from artoo.world.stage import remove_tree

PROJECT, WORKSPACE = "project", "workspace"
TREES = (PROJECT, WORKSPACE)
GUIDE = "AGENTS.md"
"""The operator's standing instructions, the one file of the real workspace that a layer's begins with."""

_MAKING = ".making-"


class LayerOrigin(Contract):
    """What a layer is a copy of. `project` and `workspace` are real absolute paths."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    board_task: str
    number: int
    project: str
    workspace: str


@dataclass(frozen=True, slots=True)
class Layer:
    """One submission's place."""

    place: Path
    origin: LayerOrigin

    @property
    def manifest(self) -> Path:
        return self.place / "manifest.jsonl"

    @property
    def submitted(self) -> Path:
        return self.place / "submitted"

    @property
    def changes(self) -> Path:
        return self.place / "changes.jsonl"

    @property
    def approval(self) -> Path:
        return self.place / "approval.json"

    def copy_of(self, tree: str) -> Path:
        """Where the task works."""
        return self.place / tree

    def original_of(self, tree: str) -> Path:
        """The real directory."""
        return Path(self.origin.project if tree == PROJECT else self.origin.workspace)

    @property
    def roots(self) -> Roots:
        """What the task's tools may see as its own."""
        return Roots(
            home=Path.home().resolve(),
            workspace=self.copy_of(WORKSPACE),
            project=self.copy_of(PROJECT),
            layer=self.place,
        )

    @property
    def real_roots(self) -> Roots:
        """What a merge changes."""
        return Roots(
            home=Path.home().resolve(),
            workspace=self.original_of(WORKSPACE),
            project=self.original_of(PROJECT),
        )

    def told(self, text: str) -> str:
        """A text of the task's with paths as people know them: relative to the project, real in the workspace."""
        project, workspace = str(self.copy_of(PROJECT)), str(self.copy_of(WORKSPACE))
        text = text.replace(f"{project}/", "").replace(project, ".")
        return text.replace(workspace, self.origin.workspace)

    def asked(self, text: str) -> str:
        """A request with the real project's paths as the copy's: "/home/me/project/a.txt" is found there."""
        project, workspace = self.origin.project, self.origin.workspace
        if len(Path(project).parts) > 2:
            text = text.replace(f"{project}/", f"{self.copy_of(PROJECT)}/")
        return text.replace(f"{workspace}/", f"{self.copy_of(WORKSPACE)}/")


@dataclass(frozen=True, slots=True)
class Layers:
    """All layers of one home (real path). Everything here blocks."""

    home: Path
    limits: CopyLimits = field(default_factory=CopyLimits)

    @property
    def folder(self) -> Path:
        return self.home / "layers"

    def begin(self, board_task: str, number: int, project: Path, workspace: Path) -> Layer:
        """A fresh layer; one of the same number that was never submitted is replaced.

        Raises SandboxError when the project is too large, cannot be read, or there is no room.
        """
        origin = LayerOrigin(
            board_task=board_task,
            number=number,
            project=str(project.resolve()),
            workspace=str(workspace.resolve()),
        )
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        making = self.folder / f"{_MAKING}{uuid.uuid4().hex}"
        try:
            self._make(making, origin)
            place = self._place(board_task, number)
            remove_tree(place)
            place.parent.mkdir(mode=0o700, exist_ok=True)
            making.rename(place)
            sync_directory(place.parent)
        except OSError as error:
            remove_tree(making)
            raise SandboxError(
                f"no private copy of {project} could be made ({error.strerror or error}); "
                f"free space below {self.home}"
            ) from error
        except SandboxError:
            remove_tree(making)
            raise
        return Layer(place, origin)

    def _make(self, place: Path, origin: LayerOrigin) -> None:
        for directory in (place, *(place / tree for tree in TREES)):
            directory.mkdir(mode=0o700)
        project, workspace = Path(origin.project), Path(origin.workspace)
        copy = TreeCopy(self._leaves_out(project, workspace), self.limits)
        copy.run(PROJECT, project, place / PROJECT)
        self._bring_guide(copy, workspace, place / WORKSPACE)
        (place / "layer.json").write_text(origin.model_dump_json(), encoding="utf-8")
        write_manifest(place / "manifest.jsonl", copy.bases)

    def _leaves_out(self, project: Path, workspace: Path) -> Callable[[bytes], bool]:
        """Credentials and artoo's own files stay where they are."""
        places = Places.of(Roots(Path.home().resolve(), workspace, project), self.home)
        return lambda path: places.classify(path) in (PathClass.SECRET, PathClass.ARTOO)

    def _bring_guide(self, copy: TreeCopy, workspace: Path, target: Path) -> None:
        if (workspace / GUIDE).is_file():
            only = os.fsencode(workspace / GUIDE)
            guide = TreeCopy(lambda path: path != only, self.limits, copy.bases)
            guide.run(WORKSPACE, workspace, target)

    def find(self, board_task: str, number: int) -> Layer | None:
        """The layer of one submission."""
        place = self._place(board_task, number)
        try:
            return Layer(place, LayerOrigin.model_validate_json((place / "layer.json").read_bytes()))
        except (OSError, ValidationError):  # never made, or removed
            return None

    def discard(self, board_task: str) -> None:
        """Removes all layers of a task. Raises OSError."""
        remove_tree(self._place(board_task, 0).parent)

    def sweep(self, known: Collection[str]) -> tuple[str, ...]:
        """Removes layers that were not made to the end, and those of tasks that are not `known`; their names."""
        removed: list[str] = []
        for place in sorted(self.folder.iterdir()) if self.folder.is_dir() else ():
            forgotten = not place.name.startswith(".") and place.name not in known
            if forgotten or place.name.startswith(_MAKING):
                remove_tree(place)
                removed.append(place.name)
        return tuple(removed)

    def _place(self, board_task: str, number: int) -> Path:
        if not board_task or "/" in board_task or board_task.startswith("."):
            raise SandboxError(f"{board_task!r} is not the id of a task")
        return self.folder / board_task / str(number)
