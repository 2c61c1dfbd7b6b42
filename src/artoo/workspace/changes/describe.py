"""Classify each change (silent, edit, deletion and so on), and leave out the directories of caches.

Reference: the table of SPEC section 8.3.

| change | class |
|---|---|
| new ordinary file or directory in project or output folder (`silent_rule`) | silent |
| ordinary file of project or output folder that is overwritten, moved to a new place, or gets new times | edit |
| any path that is deleted, or replaced by another kind of object | deletion |
| mode, owner, attributes, execute bit, second hard link; times elsewhere | mode |
| any link | link |
| any path that is new or overwritten outside project and output folder | elsewhere |
| hidden names, start-up files, names that tools start, the home's hidden part, artoo's own files | persistence |
| git changes that could not be restored from the repository (`workspace/git`) | history |
| pipes, sockets, devices; programs that gain their owner's rights | special |
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from artoo.contracts.changes import Change, ChangeKind, Node, PathClass, Trait, printable_path
from artoo.contracts.settling import ChangeClass, ClassifiedChange
from artoo.sandbox.reading.path_set import upwards
from artoo.workspace.changes.effect import Effect, Verdict
from artoo.workspace.changes.path_class import Places
from artoo.workspace.fs.stat import NodeState

_BOOKKEEPING = re.compile(rb"/\.git/(?!(hooks|config|config\.worktree|info|modules)(/|$))")
"""Files that git itself writes in a repository. Reports do not list these files individually."""
_SPECIAL = frozenset({Node.FIFO, Node.SOCKET, Node.DEVICE})

_CACHES = frozenset(
    b"__pycache__ .eslintcache .hypothesis .import_linter_cache .ipynb_checkpoints .mypy_cache .parcel-cache .pyre"
    b" .pytest_cache .pytype .ruff_cache .sass-cache .stylelintcache .turbo".split()
)
_COMPILED = (b".pyc", b".pyo")


def without_caches(effects: Sequence[Effect]) -> list[Effect]:
    """Return the effects without compiled Python and caches of known tools, which stay in the workspace.

    A program that needs a cache recreates it. A cache that a task filled would be code that no one has reviewed.
    Only the deletion of a whole cache directory, or of a compiled file by name, counts as a change.
    """
    deleted = {effect.path for effect in effects if effect.after is None}
    counted: list[Effect] = []
    for effect in effects:
        cache = _cache_of(effect)
        compiled = effect.after is not None and effect.path.endswith(_COMPILED)
        if not compiled if cache is None else cache in deleted:
            counted.append(effect)
    return counted


def _cache_of(effect: Effect) -> bytes | None:
    """Return the outermost cache directory that contains an effect, or None."""
    parts = effect.relative.split(b"/")
    for number, part in enumerate(parts):
        if part in _CACHES and (number < len(parts) - 1 or effect.is_directory):
            return effect.root.rstrip(b"/") + b"/" + b"/".join(parts[: number + 1])
    return None


def describe(effects: Iterable[Effect], places: Places) -> tuple[Change, ...]:
    """Return one change for each effect, in the same order."""
    return tuple(_change(effect, places) for effect in effects)


def _change(effect: Effect, places: Places) -> Change:
    before, after = effect.before, effect.after
    here = after or before
    assert here is not None
    return Change(
        kind=_kind(effect),
        path=effect.shown,
        node=here.node,
        before=before.node if before is not None else None,
        path_class=places.classify(effect.path),
        size_before=before.size if before is not None and before.node is Node.FILE else None,
        size_after=after.size if after is not None and after.node is Node.FILE else None,
        content_sha256=effect.digest,
        detail="; ".join(_detail(effect)),
        traits=tuple(sorted(_traits(effect))),
    )


def _kind(effect: Effect) -> ChangeKind:
    if effect.after is None:
        return ChangeKind.DELETED
    if effect.in_place:
        return ChangeKind.METADATA
    if effect.after.node in _SPECIAL:
        return ChangeKind.SPECIAL
    if effect.after.node is Node.LINK:
        return ChangeKind.LINK
    return ChangeKind.CREATED if effect.before is None else ChangeKind.OVERWRITTEN


def _traits(effect: Effect) -> Iterator[Trait]:
    before, after = effect.before, effect.after
    if _BOOKKEEPING.search(effect.path):
        yield Trait.GIT_BOOKKEEPING
    if before is not None and before.node is not Node.DIRECTORY and before.links > 1:
        yield Trait.HARD_LINKED
    if after is None:
        return
    if effect.in_place and before is not None and before.same_metadata(after):
        yield Trait.TIMES_ONLY
    if after.node is not Node.LINK and _grants_privilege(before, after):
        yield Trait.PRIVILEGED
    if before is not None and before.node is after.node is Node.FILE and _is_widened(before, after):
        yield Trait.WIDENED


def _grants_privilege(before: NodeState | None, after: NodeState) -> bool:
    """True if the change adds set-user-id, set-group-id on a file, or file capabilities, by which a program gains
    rights."""
    if not after.xattrs and not after.mode & 0o6000:
        return False
    had = {name for name, _ in before.xattrs} if before is not None else set[str]()
    gains_capability = any(name == "security.capability" and name not in had for name, _ in after.xattrs)
    bits = 0o4000 if after.node is Node.DIRECTORY else 0o6000
    new_bits = after.mode & bits & ~(before.mode if before is not None else 0)
    return gains_capability or bool(new_bits)


def _is_widened(before: NodeState, after: NodeState) -> bool:
    """True if a file gets additional permission bits, or another owner or group."""
    return bool(after.mode & ~before.mode) or (before.uid, before.gid) != (after.uid, after.gid)


def _detail(effect: Effect) -> Iterator[str]:
    before, after = effect.before, effect.after
    if before is not None and after is not None:
        yield from _differences(before, after)
    for state, words in ((before, "was a link to"), (after, "link to")):
        if state is not None and state.node is Node.LINK:
            yield f"{words} {printable_path(state.target)}"
    if after is not None and before is None and after.mode & 0o7000:
        yield f"mode {after.mode:04o}"
    if before is not None and before.links > 1 and before.node is Node.FILE:
        yield f"has {before.links - 1} other hard link(s){', which change with it' if effect.in_place else ''}"


def _differences(before: NodeState, after: NodeState) -> Iterator[str]:
    if before.node is not after.node:
        yield f"{before.node} becomes {after.node}"
    if before.mode != after.mode and after.node is not Node.LINK:
        yield f"mode {before.mode:04o} -> {after.mode:04o}"
    if (before.uid, before.gid) != (after.uid, after.gid):
        yield f"owner {before.uid}:{before.gid} -> {after.uid}:{after.gid}"
    if before.xattrs != after.xattrs:
        names = sorted({name for name, _ in set(before.xattrs) ^ set(after.xattrs)})
        yield f"attributes {', '.join(names)}"
    is_file = before.node is after.node is Node.FILE and before.size == after.size
    if is_file and before.same_metadata(after) and before.mtime_ns != after.mtime_ns:
        yield "time"


# --- classes of changes -----------------------------------------------------------------------------------------


Meaning = tuple[ChangeClass, str]

BOUNDS = frozenset({PathClass.PROJECT, PathClass.WORKSPACE})
_SENSITIVE = {
    PathClass.ARTOO: "artoo's own files",
    PathClass.SECRET: "the closed part of the home",
    PathClass.PERSISTENCE: "runs or configures programs later",
}
_MOVED = "is moved to"
_ELSEWHERE = "outside project and workspace"


def classified(
    change: Change,
    *,
    within: bool,
    unusual: Verdict | None = None,
    moved_to: str | None = None,
    says: Verdict | None = None,
) -> ClassifiedChange:
    """Return the change with its class and reason. `within`: true if the path lies in the project or the output
    folder.

    `unusual`: the reason why the path is no ordinary file (`silent_rule`), or None. `moved_to`: the new path of the
    old content, if the same change set contains it. `says`: the verdict of `workspace/git` on the path, if there is
    one.
    """
    if says is not None and says.change_class is ChangeClass.SILENT and not within:
        says = None
    meaning, reason = _meaning(change, unusual, moved_to, says)
    return ClassifiedChange(
        path=change.path,
        change_class=meaning,
        kind=change.kind,
        reason=reason,
        moved_to=moved_to if reason == _MOVED else None,
        detail=change.detail,
        rewrites=says.rewrites if says is not None and says.change_class is meaning else None,
        size_before=change.size_before,
        size_after=change.size_after,
    )


def _meaning(change: Change, unusual: Verdict | None, moved_to: str | None, says: Verdict | None) -> Meaning:
    # The rules are ordered from the most dangerous class to the least, so that no later rule weakens an earlier
    # one.
    if change.path_class is PathClass.ARTOO:
        return ChangeClass.PERSISTENCE, _SENSITIVE[PathClass.ARTOO]
    if change.has(Trait.PRIVILEGED):
        return ChangeClass.SPECIAL, "gives a program the rights of its owner"
    if change.kind is ChangeKind.SPECIAL:
        return ChangeClass.SPECIAL, "a special file (pipe, socket or device)"
    if says is not None:
        return says.change_class, says.reason
    if change.sensitive:
        return ChangeClass.PERSISTENCE, _SENSITIVE[change.path_class]
    meaning = _by_kind(change, moved_to, outside=change.path_class not in BOUNDS)
    if unusual is not None and unusual.change_class.danger < meaning[0].danger:
        return unusual.change_class, _MOVED if meaning[1] == _MOVED else unusual.reason
    return meaning


def _by_kind(change: Change, moved_to: str | None, *, outside: bool) -> Meaning:
    """Classify a change under the assumption that its file is ordinary."""
    match change.kind:
        case ChangeKind.DELETED if moved_to is not None and not outside:
            return ChangeClass.EDIT, _MOVED
        case ChangeKind.DELETED:
            return ChangeClass.DELETION, "is deleted"
        case ChangeKind.METADATA:
            return _metadata(change, outside=outside)
        case ChangeKind.LINK:
            return ChangeClass.LINK, _ELSEWHERE if outside else _link(change)
        case _ if outside:
            return ChangeClass.ELSEWHERE, _ELSEWHERE
        case ChangeKind.CREATED:
            return ChangeClass.SILENT, ""
        case _:
            return _overwritten(change)


def _link(change: Change) -> str:
    return "a new link" if change.before is None else "what is there now is replaced by a link"


def _metadata(change: Change, *, outside: bool) -> Meaning:
    """Classify a change of metadata. The new metadata apply to all hard links of a file, and one of them may lie
    elsewhere."""
    if not change.has(Trait.TIMES_ONLY):
        return ChangeClass.MODE, "mode, owner or attributes change"
    if change.has(Trait.HARD_LINKED):
        return ChangeClass.MODE, "times change under all its hard links"
    return (
        (ChangeClass.MODE, f"times change, {_ELSEWHERE}")
        if outside
        else (ChangeClass.EDIT, "only its time changes")
    )


def _overwritten(change: Change) -> Meaning:
    if change.node is not change.before:
        return ChangeClass.DELETION, f"the {change.before} is replaced by a {change.node}"
    if change.has(Trait.WIDENED):
        return ChangeClass.MODE, "what is there now is overwritten, and its mode or owner changes"
    return ChangeClass.EDIT, "what is there now is overwritten"


def moves(effects: Sequence[Effect]) -> dict[str, str]:
    """Return the new paths of the contents of files and directories that were deleted, by their printable old
    paths.

    Only a path that did not exist counts as a new path, because overwriting a file would lose its content. A
    directory counts as moved if it was not empty and all its files were moved. An empty file counts as moved only
    if its name stays the same, because all empty files are equal. If several deleted files are equal, each is
    assigned to a different new path as long as there are enough.
    """
    gone = [effect for effect in effects if effect.after is None]
    if not gone:
        return {}
    arrived: dict[tuple[str, str], list[str]] = {}
    for effect in effects:
        if effect.before is None and effect.digest is not None:
            arrived.setdefault((effect.digest, os.path.basename(effect.shown)), []).append(effect.shown)
            arrived.setdefault((effect.digest, ""), []).append(effect.shown)
    found: dict[str, str] = {}
    for effect in gone:
        if effect.before_digest is None or effect.before is None:
            continue
        same_name = arrived.get((effect.before_digest, os.path.basename(effect.shown)))
        targets = same_name or (arrived.get((effect.before_digest, "")) if effect.before.size else None)
        if targets:
            found[effect.shown] = targets.pop(0) if len(targets) > 1 else targets[0]
    return found | _moved_directories(gone, found)


def _moved_directories(gone: Sequence[Effect], moved: Mapping[str, str]) -> dict[str, str]:
    emptied: dict[str, str] = {}
    lossy: set[str] = set()
    for file in (one for one in gone if one.before is not None and not one.before.is_directory):
        target = moved.get(file.shown)
        for above in upwards(os.path.dirname(file.shown)):
            if target is None:
                lossy.add(above)
            else:
                emptied.setdefault(above, os.path.dirname(target))
    directories = (one.shown for one in gone if one.before is not None and one.before.is_directory)
    return {path: emptied[path] for path in directories if path in emptied and path not in lossy}
