"""What a difference does to the git repositories in it, by facts that git itself is asked for.

    the repository as it is ──► git: names, reflogs, objects ──┐
    the repository as it would be ──► git: the same ───────────┴─► kept: silent   lost or in doubt: history

Kept is what was reachable from a name and still is; what stood in a reflog only and still does; every name that is
still there, a branch moved forward at most; every reflog that only grew; every object. The rest is history.
"""

from __future__ import annotations

import os
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from artoo.contracts.changes import Node
from artoo.contracts.settling import ChangeClass
from artoo.ports.world import Files
from artoo.world.git_layout import Part, is_index, part_of, plain_settings, read_file, repository_of
from artoo.world.git_shadow import CannotJudge, Shadow, shadow_of
from artoo.world.scan import Effect

_FREE_NAMES = ("HEAD", "refs/remotes/", "refs/stash", "refs/artoo/")
"""Names that may go or jump as long as what they reached is reachable."""

_SHOWN = 5
_MOST_REPOSITORIES = 50
_MOST_NAMES = 20_000


@dataclass(frozen=True, slots=True)
class GitSays:
    """What a path of a repository is, and why. `programs` for settings and hooks: a persistence path anywhere."""

    change_class: ChangeClass
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Lost:
    """What a repository loses: `tips` are commits and tags that nothing would name any more, still to be had."""

    reasons: tuple[str, ...] = ()
    tips: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Repositories:
    """The verdict over all repositories of a difference. `says` by path; `lost` by a repository's directory."""

    says: Mapping[bytes, GitSays] = field(default_factory=dict[bytes, GitSays])
    lost: Mapping[Path, Lost] = field(default_factory=dict[Path, Lost])


def judge_repositories(effects: Sequence[Effect], before: Files, after: Files) -> Repositories:
    """Asks git about every repository that the effects touch. Blocking. Says nothing of paths outside of one."""
    says: dict[bytes, GitSays] = {}
    lost: dict[Path, Lost] = {}
    for number, (repository, members) in enumerate(_by_repository(effects, before, after).items()):
        if before.at(repository) is None:
            says |= _of_new_one(repository, members)
            continue
        found = _lost(repository, members, before, after) if number < _MOST_REPOSITORIES else _UNKNOWN
        if found.reasons:
            lost[repository] = found
        for one in members:
            verdict = _of_known_one(one, _inner(one, repository), found)
            if verdict is not None:
                says[one.path] = verdict
    return Repositories(says, lost)


_UNKNOWN = Lost(("there are too many repositories to be judged",))


def _by_repository(effects: Sequence[Effect], before: Files, after: Files) -> dict[Path, list[Effect]]:
    """The effects of each repository. The look for one is done once a directory."""
    holders: dict[Path, Path | None] = {}
    found: dict[Path, list[Effect]] = defaultdict(list)
    for effect in effects:
        path = Path(os.fsdecode(effect.path))
        directory = path if _is_directory(effect) else path.parent
        if directory not in holders:
            holders[directory] = repository_of(directory, before, after)
        holder = holders[directory]
        if holder is not None:
            found[holder].append(effect)
    return found


def _is_directory(effect: Effect) -> bool:
    return any(state is not None and state.is_directory for state in (effect.before, effect.after))


def _inner(effect: Effect, repository: Path) -> str:
    path = Path(os.fsdecode(effect.path))
    return "" if path == repository else str(path.relative_to(repository))


def _of_new_one(repository: Path, members: Iterable[Effect]) -> dict[bytes, GitSays]:
    """A repository that the task made: silent, but for what starts programs."""
    says: dict[bytes, GitSays] = {}
    for one in members:
        inner = _inner(one, repository)
        if part_of(inner) is not Part.PROGRAMS or _harmless_setting(one, inner, new=True):
            says[one.path] = GitSays(ChangeClass.SILENT)
        else:
            says[one.path] = _PROGRAMS
    return says


_PROGRAMS = GitSays(ChangeClass.PERSISTENCE, "runs or configures programs later")


def _harmless_setting(one: Effect, inner: str, *, new: bool) -> bool:
    """Hooks that cannot run, and the plain settings of a repository that is new itself."""
    if one.before is not None or one.after is None:
        return False
    if inner == "hooks" or (inner.startswith("hooks/") and inner.endswith(".sample")):
        return one.after.node in (Node.FILE, Node.DIRECTORY)
    if inner == "config" and new and one.after.node is Node.FILE:
        content = read_file(_upper(one))
        return content is not None and plain_settings(content)
    return False


def _upper(effect: Effect) -> bytes:
    return os.fsencode(effect.layer.upper) + b"/" + effect.relative


def _of_known_one(one: Effect, inner: str, lost: Lost) -> GitSays | None:
    """None: the path is judged like any other."""
    if one.in_place and not one.replaced_directory:
        assert one.before is not None and one.after is not None
        return GitSays(ChangeClass.SILENT) if one.before.same_metadata(one.after) else None
    part = part_of(inner)
    if part is Part.PROGRAMS:
        return GitSays(ChangeClass.SILENT) if _harmless_setting(one, inner, new=False) else _PROGRAMS
    if part is Part.STATE:
        why = "; ".join(lost.reasons)
        return GitSays(ChangeClass.HISTORY, why) if why else GitSays(ChangeClass.SILENT)
    if not _plain(one):
        return None
    if part is Part.SCRATCH:
        return GitSays(ChangeClass.SILENT)
    if part is Part.INDEX and one.after is not None:
        content = read_file(_upper(one))
        return GitSays(ChangeClass.SILENT) if content is not None and is_index(content) else None
    if one.before is None:
        return None
    return GitSays(ChangeClass.HISTORY, "it is in a repository, and not part of the layout that git documents")


def _plain(one: Effect) -> bool:
    """Files and directories only: what else git does not make."""
    states = [state for state in (one.before, one.after) if state is not None]
    return all(state.node in (Node.FILE, Node.DIRECTORY) for state in states)


# --- what is lost -------------------------------------------------------------------------------------------------


def _lost(repository: Path, members: Sequence[Effect], before: Files, after: Files) -> Lost:
    touched = [(one, inner) for one in members if part_of(inner := _inner(one, repository)) is Part.STATE]
    if not touched:
        return Lost()
    if any(after.at(repository / name) is None for name in ("HEAD", "objects", "refs")):
        return Lost(("the repository is deleted",))
    doubts = tuple(dict.fromkeys(filter(None, (_doubt(one, inner) for one, inner in touched))))
    removed = any(inner.startswith("objects/") and _removes(one) for one, inner in touched)
    try:
        with tempfile.TemporaryDirectory(prefix="artoo-git-") as place:
            was = shadow_of(repository, before, Path(place) / "before")
            will_be = shadow_of(repository, after, Path(place) / "after", borrowed=not removed)
            found = _compared(was, will_be, removed=removed)
    except (CannotJudge, OSError) as error:
        return Lost((*doubts, f"git cannot judge what would be lost ({error})"))
    return Lost((*doubts, *found.reasons), found.tips)


def _removes(one: Effect) -> bool:
    return one.before is not None and not one.before.is_directory and not one.in_place


def _doubt(one: Effect, inner: str) -> str | None:
    """What git cannot be asked about, because it would believe it."""
    within = inner.partition("/")[2].partition("/")[2] if inner.startswith("worktrees/") else inner
    if within in ("shallow", "info/grafts", "objects/info/alternates"):
        return f"{inner} hides or borrows history"
    if within.startswith("logs/") and one.before is not None and not one.before.is_directory:
        return (
            None if one.after is not None and (one.appended or one.in_place) else "entries of a reflog are removed"
        )
    if within.startswith("objects/") and not within.startswith("objects/info/"):
        changed = one.before is not None and one.after is not None and not _is_directory(one) and not one.in_place
        return "an object is overwritten" if changed else None
    return None if _plain(one) or within == "HEAD" else f"{inner} becomes something that git does not make"


def _compared(was: Shadow, will_be: Shadow, *, removed: bool) -> Lost:
    names, new_names = was.refs(), will_be.refs()
    if max(len(names), len(new_names)) > _MOST_NAMES:
        raise CannotJudge("it has too many names")
    named = [oid for oid in names.values() if oid]
    logged = was.logged()
    if removed:
        gone = was.objects() - will_be.objects()
        if gone or not will_be.whole():
            return Lost((f"objects are removed for good ({len(gone)})",))
    reasons = [*_names_lost(names, new_names, will_be)]
    beyond = will_be.beyond(named, logs=False)
    if beyond:
        reasons.append(
            f"commits lose their last name ({len(beyond)}): {'; '.join(will_be.titles(beyond[:_SHOWN]))}"
        )
    forgotten = will_be.beyond(logged, logs=True)
    if set(forgotten) - set(beyond):
        count = len(set(forgotten) - set(beyond))
        reasons.append(f"commits that only a reflog or the stash has are forgotten ({count})")
    kept = set(new_names.values())
    tags = [oid for oid in was.tags(named) if oid not in kept]
    unnamed = {*beyond, *forgotten}
    tips = [oid for oid in (*named, *logged) if oid in unnamed]
    return Lost(tuple(reasons), tuple(dict.fromkeys((*tips, *tags))))


def _names_lost(names: Mapping[str, str], new: Mapping[str, str], will_be: Shadow) -> Iterator[str]:
    moved: list[str] = []
    removed: list[str] = []
    for name, oid in names.items():
        if name.startswith(_FREE_NAMES) or new.get(name) == oid:
            continue
        if name not in new:
            removed.append(name)
        elif not name.startswith("refs/heads/") or not will_be.follows(oid, new[name]):
            moved.append(name)
    for listed, what in ((removed, "is removed"), (moved, "is moved, and not forward")):
        if listed:
            more = f" and {len(listed) - _SHOWN} more" if len(listed) > _SHOWN else ""
            yield f"{', '.join(listed[:_SHOWN])}{more} {what}"
