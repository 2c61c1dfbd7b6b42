"""Undo inside of git repositories: state goes back in one piece or not at all, and objects stay.

What a task committed is part of what a person does next: their commit, stash or branch stands on it. So an object
is never taken away (git itself collects what nothing names), and where somebody went on, HEAD, names and index stay
as they are, with the files of which they speak. A repository that the task made goes whole, or not at all.
"""

from __future__ import annotations

import hashlib
import logging
import os
import re
import tempfile
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from artoo.contracts.changes import Conflict, Node, path_bytes, printable_path
from artoo.world.files import parent_of
from artoo.world.git_head import packed_as
from artoo.world.git_index import INDEX
from artoo.world.git_keep import (
    KEPT,
    forget_names,
    is_kept_name,
    lay_down,
    loose_names,
    names_place,
    unnamed,
)
from artoo.world.git_layout import Holders, Part, inner_path, part_of, read_file, without_worktree
from artoo.world.git_shadow import CannotJudge, shadow_of
from artoo.world.git_unit import decides, is_object, is_state, moved_entries, worktree_of
from artoo.world.journal import Record, StateRecord, Step
from artoo.world.nodes import digest_file, read_state
from artoo.world.union import RealFiles

logger = logging.getLogger(__name__)

_WITH_IT = "it goes with what stays of its repository"
_ANOTHER = "something else in it is not the task's"
_COMMITTED = "HEAD was moved since"
_PACKED = "git has packed it since"
_LINE = re.compile(rb"([0-9a-f]{40,64}) ([0-9a-f]{40,64}) [^\t]*> (\d+) [-+]\d+")
"""Of a reflog: from which commit to which, and when."""
_SHORT = 10
"""Digits of a commit's name that a person is told."""


@dataclass(slots=True)
class Repositories:
    """Those that a task's acts changed. `steps`: of all of these acts; `held`: what was left, by repository.

    Names that keep commits belong to one act each (`_owned`: those of all); an undo made those in `_announced`.
    """

    steps: Sequence[Step]
    held: dict[Path, tuple[str, frozenset[str]]] = field(default_factory=dict[Path, tuple[str, frozenset[str]]])
    _holders: Holders = field(default_factory=lambda: Holders(RealFiles(), RealFiles()))
    _made: frozenset[str] = field(init=False)
    _owned: set[str] = field(init=False)
    _announced: set[str] = field(default_factory=set[str])

    def __post_init__(self) -> None:
        self._made = frozenset(one.path for one in self.steps if one.before is None and _is_directory(one))
        self._owned = {one.path for one in self.steps if one.after is not None and is_kept_name(one.path)}

    @classmethod
    def of(cls, records: Iterable[Record]) -> Repositories:
        """Blocking. Raises SandboxError when a journal cannot be read."""
        return cls([step for record in records for step in record.journal().steps])

    def stays(self, step: Step) -> bool:
        """Whether it made an object in a repository that was there before it, which is nobody's to take away; or
        only found it there: git sets its time then, so that it is not collected. Modes and owners go back, of what
        git has not packed or collected since."""
        repository = self._repository(step)
        return (
            repository is not None
            and (step.before is None or _only_touched(step) or (step.in_place and _is_gone(step)))
            and is_object(_inner(step, repository))
            and not self._is_made(repository)
        )

    def hold(self, record: Record, verdicts: dict[str, str | None], steps: Sequence[Step]) -> None:
        """Where state cannot go back as a whole, none of it does: changes the verdicts, by path."""
        members: dict[Path, list[Step]] = {}
        for step in steps:
            repository = self._repository(step)
            if repository is not None and self._is_member(step, repository):
                members.setdefault(repository, []).append(step)
        begun, since = record.undoing(), record.journal().created_at
        for repository, found in members.items():
            cause = self._cause(repository, found, verdicts, since)
            if cause is None or any(step.path in begun for step in found):  # one that was cut goes on
                continue
            files = _files(repository, record, found, steps)
            verdicts |= {step.path: verdicts[step.path] or _WITH_IT for step in (*found, *files)}
            said = f"{cause}: HEAD, branches and what is staged stay as they are{_advice(repository, found)}"
            removed = [one for one in steps if one.after is None and self._is_directory_of_objects(one, repository)]
            newest, paths = self.held.get(repository, (said, frozenset[str]()))
            self.held[repository] = newest, paths.union(step.path for step in (*found, *removed))

    def name_lost(self, record: Record, steps: Sequence[Step]) -> Iterator[Step]:
        """Where names stay as they are, commits that came back may have none: they get some, as part of this act
        if none before it made them."""
        for repository in self.held:
            members = [one for one in steps if self._repository(one) == repository and record.image(one)]
            if not members:
                continue
            images = [image for one in members if _names(one, repository) and (image := record.image(one))]
            place = names_place(repository, record.task_id)
            try:
                if tips := unnamed(repository, filter(None, map(_content, images))):
                    record.announce_names(place)
                    lay_down(place, tips)
                made = [_made(members[0].root, name) for name in loose_names(place) if name not in self._owned]
            except (CannotJudge, OSError) as error:
                logger.warning("commits that came back in %s may have no name: %s", repository, error)
                continue
            self._owned |= {one.path for one in made}
            yield from made
        self._announced |= record.named()

    def forget_names(self, paths: Iterable[str]) -> None:
        """Those at these paths go, and are no act's any more."""
        gone = frozenset(filter(is_kept_name, paths))
        forget_names(gone)
        self._owned -= gone

    def told(self, refused: Mapping[str, Conflict]) -> Iterator[Conflict]:
        """What was left: of a repository that was, one line."""
        hidden = frozenset(path for _, paths in self.held.values() for path in paths)
        places = sorted(self._announced & {os.path.dirname(path) for path in self._owned})
        for repository, (reason, _) in self.held.items():
            shown = printable_path(os.fsencode(repository))
            for place in (one for one in places if one.startswith(f"{shown}/{KEPT}/")):
                below = place.removeprefix(f"{shown}/")
                reason += f"; commits that came back and had no name have one in {below}"
            yield Conflict(path=shown, reason=reason)
        yield from (conflict for path, conflict in refused.items() if path not in hidden)

    def _repository(self, step: Step) -> Path | None:
        return self._holders.of(path_bytes(step.path), is_directory=_is_directory(step))

    def _is_made(self, repository: Path) -> bool:
        return printable_path(os.fsencode(repository / "objects")) in self._made

    def _is_directory_of_objects(self, step: Step, repository: Path) -> bool:
        """One that was made again since is as good; what cannot come back into it is told itself."""
        return _is_directory(step) and self._repository(step) == repository and is_object(_inner(step, repository))

    def _is_member(self, step: Step, repository: Path) -> bool:
        inner = _inner(step, repository)
        return self._is_made(repository) or is_state(inner) or part_of(inner) is Part.SCRATCH

    def _cause(
        self, repository: Path, members: Collection[Step], verdicts: Mapping[str, str | None], since: float
    ) -> str | None:
        made = self._is_made(repository)
        for step in members:
            inner, reason = _inner(step, repository), verdicts[step.path]
            if reason is not None and not _is_directory(step) and (_counts(inner) if made else decides(inner)):
                return f"{inner}: {reason}"
        if made:
            return _ANOTHER if self._holds_another(repository) else None
        changed = {_inner(step, repository) for step in members if not step.in_place}
        if INDEX not in changed:
            return None
        if "logs/HEAD" not in changed:
            return _COMMITTED if _head_moved(repository, since) else None
        went_on = any(verdicts[one.path] is not None for one in members if _inner(one, repository) == "logs/HEAD")
        elsewhere = "HEAD" not in changed and _head_of(repository) not in changed
        return _COMMITTED if went_on and elsewhere else None

    def _holds_another(self, repository: Path) -> bool:
        known = {step.path for step in self.steps}
        for directory, _, names in os.walk(repository):
            for name in names:
                path = os.fsencode(os.path.join(directory, name))
                if printable_path(path) not in known and _counts(inner_path(path, repository)):
                    return True
        return False


def _only_touched(step: Step) -> bool:
    """Whether an act changed nothing of it but times."""
    was, after = step.before, step.after
    if not step.in_place or was is None or after is None:
        return False
    return (was.mode, was.uid, was.gid, was.attributes()) == (
        after.mode,
        after.uid,
        after.gid,
        after.attributes(),
    )


def _is_gone(step: Step) -> bool:
    try:
        os.lstat(path_bytes(step.path))
    except FileNotFoundError:
        return True
    except OSError:  # the act closed a directory above it, for one: that is opened later
        return False
    return False


def _names(step: Step, repository: Path) -> bool:
    """Whether names of commits stood in what an act changed there."""
    return part_of(inner := _inner(step, repository)) is Part.STATE and not is_object(inner)


def _content(image: str) -> bytes | None:
    return read_file(Path(image)) if os.path.isfile(image) else None


def _made(root: str, path: str) -> Step:
    """A name that was made, as if the act had."""
    relative = path.removeprefix(f"{root}/")
    with parent_of(root, relative) as (directory, name):
        return Step(
            root=root,
            relative=relative,
            before=None,
            after=StateRecord.of(read_state(directory, name)),
            after_sha256=digest_file(directory, name),
        )


def is_packed(step: Step) -> bool:
    """Whether a loose name that an act left is among the packed ones since, with the same object."""
    if step.after is None or step.after_sha256 is None:
        return False
    return packed_as(path_bytes(step.path)) == step.after_sha256


def packed_refusal(step: Step) -> str | None:
    """Why a name that is packed cannot be put back: a loose one hides it, and none does not."""
    return _PACKED if step.before is None else None


def _is_directory(step: Step) -> bool:
    return any(state is not None and state.node is Node.DIRECTORY for state in (step.before, step.after))


def _inner(step: Step, repository: Path) -> str:
    return inner_path(path_bytes(step.path), repository)


def _counts(inner: str) -> bool:
    """Whether it is more than what git writes for itself at every look."""
    return part_of(inner) not in (Part.SCRATCH, Part.LOCK) and not without_worktree(inner).startswith("logs")


def _head_of(repository: Path) -> str:
    """The name at which HEAD is; empty where it is at none."""
    start, _, name = (read_file(repository / "HEAD") or b"").partition(b" ")
    return os.fsdecode(name.strip()) if start == b"ref:" else ""


def _head_moved(repository: Path, since: float) -> bool:
    """Whether HEAD is at another commit than at a time: what is staged the same is committed then."""
    log = repository / "logs" / "HEAD"
    if not log.is_file() or log.stat().st_mtime <= since:
        return False
    lines = filter(None, map(_LINE.match, (read_file(log) or b"").splitlines()))
    later = [line for line in lines if int(line[3]) >= int(since)]
    return bool(later) and later[0][1] != later[-1][2]


def _files(repository: Path, record: Record, members: Iterable[Step], steps: Iterable[Step]) -> Iterator[Step]:
    """Of the files that an act changed those of which the index says something else than before the act."""
    worktree = worktree_of(repository)
    index = next((step for step in members if _inner(step, repository) == INDEX), None)
    if worktree is None or index is None or index.in_place:
        return
    image = record.image(index)
    old = None if image is None else read_file(Path(image))
    moved = moved_entries(old, read_file(repository / INDEX))
    start, own = os.fsencode(worktree) + b"/", os.fsencode(repository) + b"/"
    for step in steps:
        path = path_bytes(step.path)
        if path.startswith(start) and not path.startswith(own) and moved(path.removeprefix(start)):
            yield step


# --- what the person can do ---------------------------------------------------------------------------------------


def _advice(repository: Path, members: Collection[Step]) -> str:
    """How what a task committed can be taken back; empty where it did not commit, or no reflog tells."""
    for step in members:
        if _inner(step, repository).startswith("logs/") and (ends := _logged(step)) is not None:
            return f"; {_to_revert(repository, *ends)}"
    return ""


def _logged(step: Step) -> tuple[str, str] | None:
    """From where to where an act moved what this reflog is of, if the reflog has only grown since."""
    if step.after is None or step.after.node is not Node.FILE or step.in_place:
        return None
    content = (read_file(path_bytes(step.path)) or b"")[: step.after.size]
    if hashlib.sha256(content).hexdigest() != step.after_sha256:
        return None
    added = content[step.before.size if step.before is not None else 0 :].splitlines()
    first, last = (_LINE.match(line) for line in (added[:1] + added[-1:] if added else (b"", b"")))
    if first is None or last is None or first[1] == last[2]:
        return None
    return first[1].decode(), last[2].decode()


def _to_revert(repository: Path, old: str, new: str) -> str:
    """The command that takes back all that came from one commit to the other, as far as one does."""
    tip = new[:_SHORT]
    since = "" if not old.strip("0") else f"{old[:_SHORT]}.."
    try:
        with tempfile.TemporaryDirectory(prefix="artoo-git-") as place:
            shadow = shadow_of(repository, RealFiles(), Path(place) / "now")
            asked = (new, f"^{old}") if since else (new,)
            commits = [line.split() for line in shadow.git("rev-list", "--parents", *asked).splitlines()]
            merges = [commit for commit in commits if len(commit) > 2]
            forward = not since or shadow.follows(old, new)
    except (CannotJudge, OSError):
        return f"git show {tip} tells the task's commit"
    if forward and len(commits) == 1:
        return f"git revert {tip} takes back the task's commit"
    if forward and not merges:
        return f"git revert {since}{tip} takes back the task's commits"
    if forward and merges[0][0] == new:
        return f"git revert -m 1 {tip} takes back the task's merge"
    return f"git log {since}{tip} tells the task's commits"
