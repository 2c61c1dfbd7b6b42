"""What a difference does to the git repositories in it, by facts that git itself is asked for.

    the repository as it is ──► git: names, reflogs, objects ──┐
    the repository as it would be ──► git: the same ───────────┴─► kept: silent   lost or in doubt: history

Kept is what was reachable from a name and still is; what stood in a reflog only and still does; every name that is
still there, a branch moved forward at most; every reflog that only grew; every object. The rest is history.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from artoo.contracts.changes import Node, printable_path
from artoo.contracts.settling import ChangeClass, Rewritten
from artoo.ports.world import Files
from artoo.world.git_layout import (
    Holders,
    Part,
    inner_path,
    is_gits_node,
    is_packed_refs,
    is_remade,
    is_repository,
    part_of,
    plain_settings,
    read_file,
    without_worktree,
)
from artoo.world.git_names import MOST_SHOWN, names_in_the_way, names_led_elsewhere, names_lost, said_of_names
from artoo.world.git_objects import unsound_objects
from artoo.world.git_shadow import CannotJudge, Shadow, shadow_of
from artoo.world.git_staged import Staged, compared_index
from artoo.world.scan import Effect
from artoo.world.verdict import PROGRAMS, SILENT, Verdict

_BRANCHES, _TAGS = "refs/heads/", "refs/tags/"

_MOST_REPOSITORIES = 50
_MOST_NAMES = 20_000


@dataclass(frozen=True, slots=True)
class Lost:
    """What a repository loses: `tips` are objects that nothing would name any more, still to be had.

    `staged`: what is wrong with the index. `of_names`: those of the reasons that are about names and commits, and
    say nothing against a new object. `names`: those that are moved, and not forward, or removed; `commits`:
    how many have no name any more. `merged`: a merge that was under way has become a commit.
    """

    reasons: tuple[str, ...] = ()
    tips: tuple[str, ...] = ()
    staged: tuple[str, ...] = ()
    of_names: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    commits: int = 0
    merged: bool = False

    def rewrites(self, repository: Path) -> Rewritten | None:
        """What of it is counted; None when nothing is."""
        branches, tags = (sum(name.startswith(kind) for name in self.names) for kind in (_BRANCHES, _TAGS))
        if not (branches or tags):
            return None
        place = printable_path(os.fsencode(repository))
        return Rewritten(repository=place, branches=branches, tags=tags, commits=self.commits)


@dataclass(frozen=True, slots=True)
class Repositories:
    """The verdict over all repositories of a difference. `says` by path; `lost` by a repository's directory."""

    says: Mapping[bytes, Verdict] = field(default_factory=dict[bytes, Verdict])
    lost: Mapping[Path, Lost] = field(default_factory=dict[Path, Lost])


def judge_repositories(
    effects: Sequence[Effect], before: Files, after: Files, apart: Sequence[str] = ()
) -> Repositories:
    """Asks git about every repository that the effects touch. Blocking. Says nothing of paths outside of one.

    `apart`: where git itself is not taken from.
    """
    says: dict[bytes, Verdict] = {}
    lost: dict[Path, Lost] = {}
    for number, (repository, members) in enumerate(_by_repository(effects, before, after).items()):
        if not is_repository(repository, before):
            says |= _of_new_one(repository, members, before)
            continue
        found = _lost(repository, members, (before, after), apart) if number < _MOST_REPOSITORIES else _UNKNOWN
        if found.reasons or found.staged:
            lost[repository] = found
        rewrites = found.rewrites(repository)
        for one in members:
            verdict = _of_known_one(one, _inner(one, repository), found, rewrites)
            if verdict is not None:
                says[one.path] = verdict
    return Repositories(says, lost)


_UNKNOWN = Lost(("there are too many repositories to be judged",))


def _by_repository(effects: Sequence[Effect], before: Files, after: Files) -> dict[Path, list[Effect]]:
    holders = Holders(before, after)
    found: dict[Path, list[Effect]] = defaultdict(list)
    for effect in effects:
        holder = holders.of(effect.path, is_directory=_is_directory(effect))
        if holder is not None:
            found[holder].append(effect)
    return found


def _is_directory(effect: Effect) -> bool:
    before, after = effect.before, effect.after
    return (before is not None and before.is_directory) or (after is not None and after.is_directory)


def _inner(effect: Effect, repository: Path) -> str:
    return inner_path(effect.path, repository)


def _of_new_one(repository: Path, members: Iterable[Effect], before: Files) -> dict[bytes, Verdict]:
    """A repository that the task made: silent, but for what starts programs and what git does not make.

    Of what stood in the directory before nothing was git's: it is judged like any other file. Hooks and settings
    that stood there start to count with the head, so that one is asked about.
    """
    says: dict[bytes, Verdict] = {}
    waiting = any(before.at(repository / name) is not None for name in _COUNT_WITH_A_HEAD)
    for one in members:
        inner = _inner(one, repository)
        if one.before is None or part_of(inner) is Part.PROGRAMS:
            starts = waiting and inner in ("HEAD", "objects", "refs")
            says[one.path] = PROGRAMS if starts else _in_new_one(one, inner)
    return says


_COUNT_WITH_A_HEAD = ("hooks", "config", "config.worktree", "commondir")


def _in_new_one(one: Effect, inner: str) -> Verdict:
    part = part_of(inner)
    if part is Part.PROGRAMS:
        return SILENT if _harmless_setting(one, inner, new=True) else PROGRAMS
    if not _plain(one, inner):
        return _strange(one)
    if part in (Part.OPERATION, Part.LOCK, Part.UNKNOWN):
        return _UNDER_WAY[part]
    return SILENT


def _harmless_setting(one: Effect, inner: str, *, new: bool) -> bool:
    """Hooks that cannot run, and the plain settings of a repository that is new itself."""
    if one.before is not None or one.after is None:
        return False
    if inner == "hooks" or (inner.startswith("hooks/") and inner.endswith(".sample")):
        return one.after.node in (Node.FILE, Node.DIRECTORY)
    if inner == "info/exclude" and new:
        return one.after.node is Node.FILE
    if inner == "config" and new and one.after.node is Node.FILE:
        content = read_file(_upper(one))
        return content is not None and plain_settings(content)
    return False


def _upper(effect: Effect) -> bytes:
    return os.fsencode(effect.layer.upper) + b"/" + effect.relative


_UNDER_WAY = {
    Part.OPERATION: Verdict(
        ChangeClass.PERSISTENCE, "an operation of git is under way: it goes on with what stands there, and runs it"
    ),
    Part.LOCK: Verdict(ChangeClass.HISTORY, "a lock of git: while it is there git refuses to work"),
    Part.UNKNOWN: Verdict(
        ChangeClass.HISTORY, "it is in a repository, and not part of the layout that git documents"
    ),
}


_ENDED = {
    Part.OPERATION: Verdict(
        ChangeClass.HISTORY, "it ends an operation of git that was under way: a merge or a rebase, done or given up"
    ),
    Part.LOCK: Verdict(ChangeClass.HISTORY, "it takes a lock of git away: another git may be at work"),
}

_OF_A_MERGE = ("MERGE_HEAD", "MERGE_MSG", "MERGE_MODE")
"""What git keeps until a merge is committed: the commit has it then, as its parents and its message."""


def _of_known_one(one: Effect, inner: str, lost: Lost, rewrites: Rewritten | None) -> Verdict | None:
    """None: the path is judged like any other."""
    if one.in_place and not one.replaced_directory:
        assert one.before is not None and one.after is not None
        return SILENT if one.before.same_metadata(one.after) else None
    part = part_of(inner)
    if part in (Part.TEXT, Part.NESTED):
        return None
    if part is Part.PROGRAMS:
        return SILENT if _harmless_setting(one, inner, new=False) else PROGRAMS
    if part is Part.SCRATCH and one.after is None and not is_remade(inner):
        return None
    if not _plain(one, inner):
        return _strange(one)
    if part in _UNDER_WAY:
        if lost.merged and inner in _OF_A_MERGE and one.after is None:
            return SILENT
        return (_UNDER_WAY | _ENDED if one.after is None else _UNDER_WAY)[part]
    if part in (Part.STATE, Part.INDEX):
        reasons = lost.reasons if part is Part.STATE else (*lost.staged, *lost.reasons)
        if inner.startswith("objects/") and one.before is None:
            reasons = tuple(reason for reason in reasons if reason not in lost.of_names)
        why = "; ".join(reasons)
        return Verdict(ChangeClass.HISTORY, why, rewrites) if why else SILENT
    return SILENT


def _strange(one: Effect) -> Verdict:
    link = one.after is not None and one.after.node is Node.LINK
    return Verdict(ChangeClass.LINK if link else ChangeClass.HISTORY, "git does not make such a thing there")


def _plain(one: Effect, inner: str) -> bool:
    """What git makes: a file that its owner can read, or a directory. Only objects may have several names."""
    if one.after is None:
        return True
    if not is_gits_node(inner, one.after.node) or not one.after.mode & 0o400:
        return False
    return one.after.node is Node.DIRECTORY or one.after.links == 1 or inner.startswith("objects/")


# --- what is lost -------------------------------------------------------------------------------------------------


def _lost(repository: Path, members: Sequence[Effect], looks: tuple[Files, Files], apart: Sequence[str]) -> Lost:
    before, after = looks
    parts = (Part.STATE, Part.INDEX)
    touched = [(one, inner) for one in members if part_of(inner := _inner(one, repository)) in parts]
    if not touched:
        return Lost()
    if any(after.at(repository / name) is None for name in ("HEAD", "objects", "refs")):
        return Lost(("the repository is deleted",))
    doubts = tuple(dict.fromkeys(filter(None, (_doubt(one, inner) for one, inner in touched))))
    removed = any(inner.startswith("objects/") and _removes(one) for one, inner in touched)
    try:
        with tempfile.TemporaryDirectory(prefix="artoo-git-") as place:
            was = shadow_of(repository, before, Path(place) / "before", apart=apart)
            will_be = shadow_of(repository, after, Path(place) / "after", borrowed=not removed, apart=apart)
            found = _compared(was, will_be, removed=removed)
            unsound = tuple(unsound_objects(repository, touched, (was, will_be), looks))
            staged = _staged(repository, touched, (was, will_be), looks)
            merged = _is_merged(repository, will_be, before, after)
    except (CannotJudge, OSError) as error:
        return Lost((*doubts, f"git cannot judge what would be lost ({error})"))
    return replace(
        found,
        reasons=(*doubts, *unsound, *found.reasons),
        tips=(*found.tips, *staged.tips),
        staged=staged.reasons,
        merged=merged,
    )


def _is_merged(repository: Path, will_be: Shadow, before: Files, after: Files) -> bool:
    """Whether the commits that were being merged are all behind HEAD now, and nothing is being merged any more."""
    place = before.at(repository / "MERGE_HEAD")
    content = read_file(place) if place is not None else None
    merging = content.decode("ascii", "replace").split() if content is not None else []
    if not merging or after.at(repository / "MERGE_HEAD") is not None:
        return False
    head = will_be.refs().get("HEAD", "")
    return bool(head) and all(_OBJECT.fullmatch(oid) and will_be.follows(oid, head) for oid in merging)


def _staged(
    repository: Path,
    touched: Sequence[tuple[Effect, str]],
    shadows: tuple[Shadow, Shadow],
    looks: tuple[Files, Files],
) -> Staged:
    """What is wrong with each index that the effects touch."""
    reasons: list[str] = []
    tips: list[str] = []
    for one, inner in touched:
        if part_of(inner) is not Part.INDEX or (one.in_place and not one.appended and one.after is not None):
            continue
        worktree = repository.parent if inner == "index" and repository.name == ".git" else None
        found = compared_index(repository, inner, worktree, shadows, looks)
        reasons += found.reasons
        tips += found.tips
    return Staged(tuple(dict.fromkeys(reasons)), tuple(dict.fromkeys(tips)))


_OBJECT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")


def _removes(one: Effect) -> bool:
    return one.before is not None and not one.before.is_directory and not one.in_place


def _doubt(one: Effect, inner: str) -> str | None:
    """What git cannot be asked about, because it would believe it."""
    within = without_worktree(inner)
    if within in ("shallow", "info/grafts", "objects/info/alternates", "objects/info/http-alternates"):
        return f"{inner} hides or borrows history"
    if within.startswith("logs/") and one.before is not None and not one.before.is_directory:
        return (
            None if one.after is not None and (one.appended or one.in_place) else "entries of a reflog are removed"
        )
    if within.startswith("objects/") and not within.startswith("objects/info/"):
        changed = one.before is not None and one.after is not None and not _is_directory(one) and not one.in_place
        return "an object is overwritten" if changed else None
    if within == "packed-refs" and one.after is not None and not is_packed_refs(read_file(_upper(one))):
        return "the packed names are not in the order that git relies on"
    return None if _plain(one, inner) else f"{inner} becomes something that git does not make"


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
    removed_names, moved_names = names_lost(names, new_names, will_be)
    reasons = [
        *names_in_the_way(names, new_names),
        *names_led_elsewhere(names, was.symbolic(), will_be.symbolic()),
        *said_of_names(removed_names, moved_names),
    ]
    beyond = will_be.beyond(named, logs=False)
    if beyond:
        reasons.append(
            f"commits lose their last name ({len(beyond)}): {'; '.join(will_be.titles(beyond[:MOST_SHOWN]))}"
        )
    forgotten = will_be.beyond(logged, logs=True)
    if set(forgotten) - set(beyond):
        count = len(set(forgotten) - set(beyond))
        reasons.append(f"commits that only a reflog or the stash has are forgotten ({count})")
    kept = set(new_names.values())
    tags = [oid for oid in was.tags(named) if oid not in kept]
    unnamed = {*beyond, *forgotten}
    tips = [oid for oid in (*named, *logged) if oid in unnamed]
    lost = (*removed_names, *moved_names)
    named_by = tuple(dict.fromkeys((*tips, *tags)))
    return Lost(tuple(reasons), named_by, of_names=tuple(reasons), names=lost, commits=len(beyond))
