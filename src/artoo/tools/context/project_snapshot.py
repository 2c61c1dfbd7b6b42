"""Walk the project for its listing within a time limit, and read the beginnings of named files and guides."""

from __future__ import annotations

import asyncio
import os
import re
import stat
from collections.abc import Awaitable, Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path

from artoo.contracts.changes import Change, ChangeKind, Trait, path_bytes
from artoo.contracts.errors import ArtooError
from artoo.contracts.settling import ChangeClass
from artoo.contracts.text import listed
from artoo.ports.sandbox import Roots
from artoo.ports.surroundings import Surroundings
from artoo.ports.workspace import Files, Workspace
from artoo.tools.approval.policy import Policies
from artoo.tools.context.agents_md import GUIDE_CHARACTERS, GUIDE_FILES, Guide, guides
from artoo.tools.context.project_listing import (
    LISTING_CHARACTERS,
    MAX_REQUEST,
    MOST_NAMED,
    WHOLE_CHARACTERS,
    Head,
    Snapshot,
    describe,
    inside,
    named_in,
    place_in,
)
from artoo.tools.core.command_runner import meant_changes
from artoo.tools.core.to_thread import in_thread
from artoo.tools.core.tool import Look
from artoo.tools.files.paths import absolute, entry_at, existing, found_at, shown, withheld
from artoo.tools.files.text_files import NotPlainFile, decode, kind_of_bytes, read_limited
from artoo.tools.files.walk import EntryKind, Walk, WalkLimits
from artoo.tools.provenance.read_tracking import LookedAt
from artoo.tools.settlement.diff_text import moved_files, ref_moves
from artoo.tools.settlement.review import act_of
from artoo.workspace.changes.path_class import Places
from artoo.workspace.files.rooted import real_files

_LOOK = WalkLimits(entries=20_000, seconds=1.5)
_WALL_SECONDS = 6.0
_JUDGING_SECONDS = 2.0
"""Time limit in seconds for classifying changes, because git is asked about changed repositories (100 ms for a
thousand commits)."""
_HEAD_BYTES = 8_192
_MOST_HEADS = 4
_HEAD_LINES = 3
_WHOLE_LINES, _WHOLE_BYTES = 200, 6_000
"""If whole files are wanted, a file within these limits (lines, bytes) is shown whole. A project of at most that
many bytes is shown whole too."""
_MOST_WHOLE = 16
_MOST_PATHS = 500
_PATH = re.compile(r"(?<![\w./~:-])(?:~?/|\./)?[\w.+@%=~-]+(?:/[\w.+@%=~-]+)*(?<![.-])", re.ASCII)
"""A path that consists of ordinary names. A full stop that ends the sentence is not part of it."""

_ENDING = re.compile(r"[^./]\.[A-Za-z][A-Za-z0-9]{0,7}\Z")


def _unobserved(source: str, text: str) -> None:
    """Ignore a text and its source, for callers that do not track provenance."""


def _everything(path: str) -> bool:
    """Attribute every change to the subtask that asks."""
    return True


async def _nothing_new() -> tuple[str, ...]:
    """Return no news about events since the last turn."""
    return ()


@dataclass(frozen=True, slots=True)
class ProjectLook:
    """Describes the project from the files of a workspace. Implements `ports.surroundings.TurnSource`.

    `whole_files`: true to show named files whole if they are not long, and a small project too. `workspace`: the
    workspace whose changes are reported and classified. If it is None, no changes are reported. `mine`: returns
    whether this subtask changed a printable path. All other changes were made earlier in the task. `turns` returns
    the news for a turn of the executor. `observe` receives the source and the text of each shown file that another
    author wrote. `looked` records all files that are shown. `permitted`: standing permissions. Changes that they
    cover are not reported as pending.
    """

    roots: Roots
    places: Places
    files: Look = real_files
    characters: int | None = None
    guide_characters: int = GUIDE_CHARACTERS
    limits: WalkLimits = field(default_factory=lambda: _LOOK)
    whole_files: bool = False
    workspace: Workspace | None = None
    mine: Callable[[str], bool] = _everything
    turns: Callable[[], Awaitable[tuple[str, ...]]] = _nothing_new
    observe: Callable[[str, str], None] = _unobserved
    looked: LookedAt = field(default_factory=LookedAt)
    permitted: Policies = field(default_factory=Policies)

    @property
    def room(self) -> int:
        """Return the maximum number of characters of the tree, which is also that of the text of files."""
        return self.characters or (WHOLE_CHARACTERS if self.whole_files else LISTING_CHARACTERS)

    async def look(self, request: str) -> Surroundings:
        """Describe the surroundings of `request`. Never raises. If there is a problem, the listing reports it."""
        try:
            async with asyncio.timeout(_WALL_SECONDS):
                changes = () if self.workspace is None else await self.workspace.changes()
                own = tuple(change for change in changes if self.mine(change.path))
                seen, found = await in_thread(self._look, request, own)
                for guide in found:
                    if guide.foreign:
                        self.observe(guide.path, guide.text)
                others = tuple(change for change in changes if not self.mine(change.path))
                changed, earlier = [
                    await in_thread(_by_kind, some, self.roots, real_files(), self.files()) if some else ""
                    for some in (own, others)
                ]
                classes = await self._classes(self.workspace) if self.workspace is not None and changes else ()
                return replace(seen, changed=changed, earlier=earlier, classes=classes)
        except TimeoutError:
            return Surroundings(listing="The project directory did not answer in time; it is not listed.")
        except (ArtooError, OSError) as error:
            return Surroundings(listing=f"The project directory is not listed: {error}")

    async def _classes(self, workspace: Workspace) -> tuple[ChangeClass, ...]:
        """Return each class of the workspace's changes once, the most dangerous first. Return nothing if that takes
        too long or fails."""
        try:
            async with asyncio.timeout(_JUDGING_SECONDS):
                changes = await workspace.classes()
        except (ArtooError, OSError):
            return ()
        found = {one.change_class for one in changes if not self.permitted.covering([act_of(one)])}
        return tuple(sorted(found, key=lambda one: one.danger))

    async def news(self) -> tuple[str, ...]:
        return await self.turns()

    def _look(self, request: str, changes: tuple[Change, ...]) -> tuple[Surroundings, tuple[Guide, ...]]:
        files = self.files()
        snapshot = self._snapshot(files)
        named = named_in(snapshot, request)
        snapshot = self._with_heads(files, snapshot, ((path, self.roots.project / path) for path in named))
        snapshot = replace(snapshot, missing=self._missing(files, snapshot, request))
        snapshot = self._with_heads(files, snapshot, self._named_outside(files, request))
        further = (*inside(snapshot, named), *self._all_of_a_small_project(snapshot))
        snapshot = self._with_heads(files, snapshot, ((path, self.roots.project / path) for path in further))
        about = (*(self.roots.project / path for path in named), *_meant(changes))
        found = guides(files, self.roots, self.places, about, self.guide_characters)
        seen = describe(snapshot, request, self.room)
        # A small model must read files with a tool, even if they were shown whole.
        whole = seen.whole if self.whole_files else ()
        return replace(seen, guide="\n\n".join(map(str, found)), whole=whole), found

    def _with_heads(self, files: Files, snapshot: Snapshot, named: Iterable[tuple[str, Path]]) -> Snapshot:
        """Add the beginnings of these files to the snapshot, up to the maximum number of files."""
        heads = dict(snapshot.heads)
        shown_already = {absolute(name, self.roots) for name in heads}
        for name, path in named:
            if len(heads) < (_MOST_WHOLE if self.whole_files else _MOST_HEADS) and path not in shown_already:
                head = self._head(files, path)
                heads |= {name: head} if head is not None else {}
                shown_already.add(path)
        return replace(snapshot, heads=heads)

    def _all_of_a_small_project(self, snapshot: Snapshot) -> tuple[str, ...]:
        """Return the files of a project that is small enough to be shown whole. Return nothing if it exceeds the
        limits."""
        visible = [
            each for each in snapshot.entries if each.kind is EntryKind.FILE and not each.path.startswith(".")
        ]
        size = sum(each.size or 0 for each in visible)
        fits = size <= min(_WHOLE_BYTES, self.room) and len(visible) <= _MOST_WHOLE
        if not (self.whole_files and snapshot.complete and fits):
            return ()
        # Guides are left out, because the prompts contain them already.
        return tuple(each.path for each in visible if each.name not in GUIDE_FILES)

    def _snapshot(self, files: Files) -> Snapshot:
        walk = Walk(self.roots.project, self.limits, files, hidden="last", honour_ignore=True)
        entries = tuple(walk)
        links = (entry.path for entry in entries if entry.kind is EntryKind.LINK)
        return Snapshot(
            entries=entries,
            complete=walk.complete,
            empty=frozenset(walk.empty),
            unreadable=frozenset(walk.unreadable),
            ignored=tuple(walk.ignored),
            broken=frozenset(path for path in links if found_at(files, self.roots.project / path) is None),
        )

    def _named_outside(self, files: Files, request: str) -> Iterator[tuple[str, Path]]:
        """Yield the files that the request names and the walk does not visit. These are ignored files and files
        outside of the project."""
        for text in _paths_in(request):
            path = absolute(text, self.roots)
            if entry_at(files, path) is not None:
                yield shown(path, self.roots), path
        workspace = self.roots.workspace
        try:
            names = files.names(files.resolve(workspace))
        except OSError:
            return
        for name in names:
            if not name.startswith(".") and place_in(name, request[:MAX_REQUEST]) is not None:
                yield str(workspace / name), workspace / name

    def _missing(self, files: Files, snapshot: Snapshot, request: str) -> tuple[str, ...]:
        """Return the paths in the request that have a file extension and exist neither in the project nor in
        another place where tools look."""
        names = {entry.name for entry in snapshot.entries}
        asked = (
            text for text in _paths_in(request) if _ENDING.search(text) and text.rpartition("/")[2] not in names
        )
        nowhere = (text for text in asked if entry_at(files, existing(text, self.roots, files)) is None)
        return tuple(islice(nowhere, MOST_NAMED))

    def _head(self, files: Files, path: Path) -> Head | None:
        """Read the beginning of a file. Return None for a directory, or if there is no regular file."""
        try:
            real = files.resolve(path)
        except OSError:
            return None
        found = files.stat(real)
        if found is None or stat.S_ISDIR(found.mode):
            return None
        if (instead := withheld(real, self.places)) is not None:
            return Head(instead=instead)
        note = self.looked.showing(real, found)
        try:
            data, size = read_limited(files, real, _HEAD_BYTES)
        except NotPlainFile:
            return None
        except OSError as error:
            return Head(instead=f"cannot be read: {error.strerror}")
        if not data:
            return Head(instead="is empty")
        text = decode(data, whole=size <= _HEAD_BYTES)
        if text is None:
            return Head(instead=f"is {kind_of_bytes(data)}, not text")
        lines = text.text.splitlines()
        most = _WHOLE_LINES if self.whole_files and size <= _WHOLE_BYTES else _HEAD_LINES
        whole = size <= _HEAD_BYTES and len(lines) <= most
        note(whole)
        return Head(lines=tuple(lines if whole else lines[:_HEAD_LINES]), whole=whole, form=text.form)


def _by_kind(changes: tuple[Change, ...], roots: Roots, before: Files, now: Files) -> str:
    """List the changes that the task probably intended, with a line for each kind, such as `created: a, b` or
    `moved: d -> e`.

    The lines are followed by the git refs that moved, and by a git operation that is in progress.
    """
    meant = frozenset(meant_changes(changes))
    moved = moved_files((change for change in changes if change.path in meant), before, now)
    arrived = frozenset(moved.values())
    lines = {"created": list[str](), "changed": list[str](), "moved": list[str](), "deleted": list[str]()}
    others = [
        shown(_path_of(one.path), roots)
        for one in changes
        if one.path in meant and one.has(Trait.CHANGED_MEANWHILE)
    ]
    for change in changes:
        name = shown(_path_of(change.path), roots)
        if change.path in moved:
            lines["moved"].append(f"{name} -> {shown(_path_of(moved[change.path]), roots)}")
        elif change.path in meant and change.path not in arrived:
            # A new link has a kind of change of its own, but is listed as created.
            kind = ChangeKind.CREATED if change.before is None else change.kind
            lines[kind.value if kind.value in lines else "changed"].append(name)
    if others:
        lines["changed by somebody else too, which is not seen here"] = others
    told = [f"{kind}: {listed(paths)}" for kind, paths in lines.items() if paths]
    git = ref_moves(changes, before, now, brief=True)
    return "\n".join((*told, *(f"in {shown(_path_of(f'{where}/.git'), roots)}: {moved}" for where, moved in git)))


def _meant(changes: tuple[Change, ...]) -> Iterator[Path]:
    return map(_path_of, meant_changes(changes))


def _path_of(printable: str) -> Path:
    return Path(os.fsdecode(path_bytes(printable)))


def _paths_in(request: str) -> Iterator[str]:
    """Yield the parts of a request that have the form of a path, each once."""
    found = (match.group() for match in islice(_PATH.finditer(request[:MAX_REQUEST]), _MOST_PATHS))
    return iter(dict.fromkeys(found))
