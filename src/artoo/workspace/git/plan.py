"""The operation on one repository, as data: old and new values of everything that git brings over."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable

from pydantic import BaseModel, ConfigDict

SYMBOLIC = "ref: "
"""How the value of a ref that stands for another one begins. Other values are object ids; empty: there is none."""

CHECKOUT = "HEAD"
"""The group of what is checked out: HEAD, the branch at which it is, and the index. They move together or not."""

STASH = "refs/stash"


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


class RefChange(_Frozen):
    """One ref, `HEAD` included, by its printable name. `group`: what moves only together."""

    name: str
    old: str
    new: str
    group: str


class IndexChange(_Frozen):
    """The entries of one printable path in the index, each as `MODE OBJECT STAGE`."""

    path: str
    old: tuple[str, ...]
    new: tuple[str, ...]


class StashEntry(_Frozen):
    """One entry of the stash. `date` as git writes it."""

    commit: str
    name: str
    email: str
    date: str
    message: str


class ExtraFile(_Frozen):
    """The content (as latin-1) and the permission bits of a hook or the like of a new repository."""

    inner: str
    content: str
    mode: int


class GitAct(_Frozen):
    """The operation that brings a task's commits into one repository. `git_dir` and `needs` are printable paths.

    `heads` and `commits`: HEAD and the commit to which it leads, before and after. `pack`: the file with the
    objects that the user's repository lacks; empty: none. `lost`: objects that nothing would name any more.
    `needs`: files that belong to what is checked out; a directory stands for all below it. `created`: the task made
    the repository, with `settings` (keys and values), `shallow` and `extras`. `shown`: the group and the path of
    each change that the user sees.
    """

    task_id: str
    git: str
    git_dir: str
    object_format: str
    heads: tuple[str, str]
    commits: tuple[str, str]
    pack: str = ""
    refs: tuple[RefChange, ...] = ()
    index: tuple[IndexChange, ...] = ()
    stash_old: tuple[StashEntry, ...] = ()
    stash_new: tuple[StashEntry, ...] = ()
    lost: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    created: bool = False
    settings: tuple[tuple[str, str], ...] = ()
    shallow: str = ""
    extras: tuple[ExtraFile, ...] = ()
    shown: tuple[tuple[str, str], ...] = ()

    @property
    def has_checkout(self) -> bool:
        """True if the act changes what is checked out."""
        return bool(self.index) or any(one.group == CHECKOUT for one in self.refs)

    @property
    def paths(self) -> tuple[str, ...]:
        """The paths of the changes that the user sees."""
        return tuple(path for _, path in self.shown)

    @property
    def digest(self) -> str:
        """The sha256 (hex) of what would be there and what it would replace; the pack holds nothing more."""
        return hashlib.sha256(self.model_dump_json(exclude={"pack", "git"}).encode()).hexdigest()

    def restricted(self, paths: Collection[str]) -> GitAct | None:
        """Return the part of the act that shows as one of these paths, None if it is empty."""
        groups = {group for group, path in self.shown if path in paths}
        if not groups or self.created:
            return self if groups else None
        without: dict[str, object] = {"stash_new": self.stash_old} if STASH not in groups else {}
        without |= {"index": (), "needs": ()} if CHECKOUT not in groups else {}
        refs = tuple(one for one in self.refs if one.group in groups)
        shown = tuple(one for one in self.shown if one[0] in groups)
        return self.model_copy(update={**without, "refs": refs, "shown": shown})


def objects_named(values: Iterable[str]) -> tuple[str, ...]:
    """Return the object ids among values of refs, each once."""
    return tuple(dict.fromkeys(one for one in values if one and not one.startswith(SYMBOLIC)))
