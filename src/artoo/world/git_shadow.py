"""A repository as a look shows it, laid out for git to read: its state is copied, its objects are borrowed.

Nothing of the repository's own settings, hooks or replacements is there, so whatever a task wrote into them cannot
make git run something or count differently. Read only: nothing is ever written back.
"""

from __future__ import annotations

import os
import stat
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from artoo.ports.world import Files
from artoo.world.git_layout import read_file
from artoo.world.programs import find_program

_STATE_FILES = ("HEAD", "packed-refs", "shallow")
_STATE_DIRECTORIES = ("refs", "logs", "reftable")
_MOST_FILES = 100_000
_MOST_BYTES = 256 << 20
_SECONDS = 60.0
_DEEPEST = 40
_ALTERNATES_DEPTH = 5


class CannotJudge(Exception):
    """Git is not there, does not read this repository, or it is too large: whoever asks must assume the worst."""


@dataclass(frozen=True, slots=True)
class Shadow:
    """One repository to ask about. Every question raises CannotJudge when git has no answer."""

    place: Path
    apart: Sequence[str] = ()
    """Where git itself is not taken from."""

    def refs(self) -> dict[str, str]:
        """Full name to object, HEAD among them when it names a commit."""
        lines = self.git("for-each-ref", "--format=%(objectname) %(refname)").splitlines()
        found = {name: oid for oid, _, name in (line.partition(" ") for line in lines)}
        for name in ("HEAD", *self._heads()):
            head = self.git("rev-parse", "--verify", "--quiet", name, accept=(0, 1)).strip()
            found |= {name: head} if head else {}
        return found

    def symbolic(self) -> dict[str, str]:
        """Full names that stand for another name, and that one."""
        lines = self.git("for-each-ref", "--format=%(refname) %(symref)").splitlines()
        return {name: target for name, _, target in (line.partition(" ") for line in lines) if target}

    def _heads(self) -> tuple[str, ...]:
        """Those of linked worktrees: names like others, for whoever works there."""
        return tuple(f"worktrees/{head.parent.name}/HEAD" for head in self.place.glob("worktrees/*/HEAD"))

    def logged(self) -> tuple[str, ...]:
        """Every commit that stands in a reflog and is there, the stash among them. Bare repositories mostly have no
        reflog; `--stdin` keeps git from taking the empty list for a question without commits."""
        return tuple(self.git("rev-list", "--no-walk=unsorted", "--reflog", "--stdin").split())

    def objects(self) -> frozenset[str]:
        """All that there is, reachable or not."""
        batch = ("cat-file", "--batch-all-objects", "--unordered", "--batch-check=%(objectname)")
        return frozenset(self.git(*batch).split())

    def beyond(self, tips: Iterable[str], *, logs: bool) -> tuple[str, ...]:
        """Commits reachable from the tips, but from no name here (with `logs`: and no reflog). At most 1,000."""
        asked = "".join(f"{tip}\n" for tip in dict.fromkeys(tips))
        if not asked:
            return ()
        kept = ("--not", "--all", *self._heads(), *(("--reflog",) if logs else ()))
        return tuple(self.git("rev-list", "--max-count=1000", "--stdin", *kept, text=asked).split())

    def follows(self, old: str, new: str) -> bool:
        """Whether `new` is `old`, or a commit that has it among its ancestors."""
        return old == new or self._status("merge-base", "--is-ancestor", old, new) == 0

    def has(self, oids: Iterable[str]) -> bool:
        """Whether all of these objects are there."""
        asked = "".join(f"{oid}\n" for oid in oids)
        return " missing" not in self.git("cat-file", "--batch-check", text=asked)

    def tags(self, oids: Iterable[str]) -> tuple[str, ...]:
        """Those that are tag objects."""
        return self._of_kind(oids, "tag")

    def commits(self, oids: Iterable[str]) -> tuple[str, ...]:
        """Those that are commits."""
        return self._of_kind(oids, "commit")

    def _of_kind(self, oids: Iterable[str], kind: str) -> tuple[str, ...]:
        asked = "".join(f"{oid}\n" for oid in dict.fromkeys(oids))
        lines = self.git("cat-file", "--batch-check=%(objectname) %(objecttype)", text=asked).splitlines()
        return tuple(line.partition(" ")[0] for line in lines if line.endswith(f" {kind}"))

    def titles(self, oids: Iterable[str]) -> tuple[str, ...]:
        """Short name and first line of commits, for a person."""
        listed = list(oids)
        return (
            tuple(self.git("log", "--no-walk=unsorted", "--format=%h %s", *listed).splitlines()) if listed else ()
        )

    def whole(self) -> bool:
        """Whether every pack that is here is what it says, and everything that has a name is complete."""
        fsck = ("fsck", "--connectivity-only", "--no-dangling", "--no-progress")
        return self.packs_hold() and self._status(*fsck) == 0

    def packs_hold(self) -> bool:
        """Whether every pack that lies here itself is what its index says."""
        packs = [str(pack) for pack in (self.place / "objects" / "pack").glob("*.idx")]
        return not packs or self._status("verify-pack", *packs) == 0

    def graph_holds(self, info: Path, files: Files) -> bool:
        """Whether the graph of commits that `files` shows in `info` says what the commits say."""
        copier = _Copier(files)
        for name in ("commit-graph", "commit-graphs"):
            copier.tree(info / name, self.place / "objects" / "info" / name)
        return self._status("-c", "core.commitGraph=true", "commit-graph", "verify", "--no-progress") == 0

    def everything(self) -> frozenset[str]:
        """Every object that a name or a reflog reaches."""
        lines = self.git("rev-list", "--objects", "--all", *self._heads(), "--reflog").splitlines()
        return frozenset(line.partition(" ")[0] for line in lines)

    def git(
        self,
        *arguments: str,
        text: str = "",
        accept: tuple[int, ...] = (0,),
        index: Path | None = None,
        objects: Path | None = None,
    ) -> str:
        """What git prints. `index`: where the index is that it reads. `objects`: a directory of objects in place of
        all others; whatever writes objects needs one, for git sets the time of those that it borrows. Raises
        CannotJudge."""
        places = {"GIT_INDEX_FILE": index, "GIT_OBJECT_DIRECTORY": objects}
        done = self._run(arguments, text, {name: str(place) for name, place in places.items() if place is not None})
        if done.returncode not in accept:
            said = done.stderr.decode("utf-8", "replace").strip().splitlines()
            raise CannotJudge(said[-1][:200] if said else f"git {arguments[0]} failed")
        return done.stdout.decode("utf-8", "replace")

    def _status(self, *arguments: str) -> int:
        return self._run(arguments, "").returncode

    def _run(
        self, arguments: tuple[str, ...], text: str, places: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[bytes]:
        settings = ("core.commitGraph=false", "core.multiPackIndex=false", "safe.directory=*", "gc.auto=0")
        options = [part for setting in settings for part in ("-c", setting)]
        try:
            return subprocess.run(
                [_git(self.apart), "--no-pager", *options, *arguments],
                input=text.encode(),
                capture_output=True,
                timeout=_SECONDS,
                env=_environment(self.place) | dict(places or {}),
                cwd=self.place,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise CannotJudge(f"git cannot be asked: {error}") from error


def shadow_of(
    repository: Path, files: Files, place: Path, *, borrowed: bool = True, apart: Sequence[str] = ()
) -> Shadow:
    """Lays the repository out in `place`, which must not exist. Blocking. Raises CannotJudge, OSError.

    `borrowed`: all objects of the real repository are there too; without it only those that `files` shows.
    `apart`: where git itself is not taken from.
    """
    place.mkdir(mode=0o700)
    copier = _Copier(files)
    for name in _STATE_FILES:
        copier.file(repository / name, place / name)
    for name in _STATE_DIRECTORIES:
        copier.tree(repository / name, place / name)
    copier.worktrees(repository / "worktrees", place / "worktrees")
    (place / "refs").mkdir(exist_ok=True)
    objects = place / "objects"
    (objects / "info").mkdir(parents=True)
    alternates = _alternates(repository / "objects", files)
    if borrowed:
        alternates = (repository / "objects", *alternates)
    copier.links(repository / "objects", objects, real=not borrowed)
    (objects / "info" / "alternates").write_bytes(b"".join(os.fsencode(path) + b"\n" for path in alternates))
    (place / "config").write_text(_settings(repository, files, place, apart), encoding="utf-8")
    return Shadow(place, apart)


@dataclass(slots=True)
class _Copier:
    """Bounded copies of what a look shows."""

    files: Files
    count: int = 0
    size: int = 0

    def file(self, path: Path, target: Path) -> None:
        place = self.files.at(path)
        if place is None:
            return
        self._bound(place.lstat().st_size)
        if place.is_symlink():
            os.symlink(os.readlink(place), target)
            return
        content = read_file(place)
        if content is None:
            raise CannotJudge(f"{path.name} is not a file that can be read")
        target.write_bytes(content)

    def tree(self, directory: Path, target: Path, depth: int = 0) -> None:
        place = self.files.at(directory)
        if place is None:
            return
        if depth > _DEEPEST:
            raise CannotJudge(f"{directory.name} nests too deep")
        if not stat.S_ISDIR(place.lstat().st_mode):
            self.file(directory, target)
            return
        target.mkdir(exist_ok=True)
        for name in self.files.names(directory):
            self.tree(directory / name, target / name, depth + 1)

    def worktrees(self, directory: Path, target: Path) -> None:
        """Of linked worktrees: where they stand, and the record of it."""
        if self.files.at(directory) is None:
            return
        for name in self.files.names(directory):
            (target / name).mkdir(parents=True)
            for part in ("HEAD", "logs", "refs"):
                self.tree(directory / name / part, target / name / part)
            (target / name / "gitdir").write_text("/nonexistent/.git\n")
            (target / name / "commondir").write_text("../..\n")

    def links(self, directory: Path, target: Path, *, real: bool) -> None:
        """Links to the object files that `files` shows; without `real` only to those that a layer holds."""
        for name in self.files.names(directory):
            if name == "info":
                continue
            inside = directory / name
            (target / name).mkdir(exist_ok=True)
            for file in self.files.names(inside) if self._holds(inside, real=real) else ():
                place = self.files.at(inside / file)
                if place is not None and (real or place != inside / file):
                    self._bound(0)
                    os.symlink(place, target / name / file)

    def _holds(self, directory: Path, *, real: bool) -> bool:
        """Whether a directory of objects may hold something of a layer: most do not."""
        place = self.files.at(directory)
        return place is not None and place.is_dir() and (real or place != directory)

    def _bound(self, size: int) -> None:
        self.count += 1
        self.size += size
        if self.count > _MOST_FILES or self.size > _MOST_BYTES:
            raise CannotJudge("the repository is too large to be judged")


def _alternates(objects: Path, files: Files, depth: int = 0) -> tuple[Path, ...]:
    """Other stores of objects that a repository names, as absolute paths."""
    place = files.at(objects / "info" / "alternates")
    content = read_file(place, 1 << 20) if place is not None else None
    if content is None or depth > _ALTERNATES_DEPTH:
        return ()
    lines = [line for line in content.splitlines() if line and not line.startswith(b"#")]
    named = [Path(os.path.normpath(objects / os.fsdecode(line))) for line in lines]
    return tuple(found for path in named for found in (path, *_alternates(path, files, depth + 1)))


def _settings(repository: Path, files: Files, place: Path, apart: Sequence[str]) -> str:
    """The two settings without which the repository's files cannot be read, and nothing else of its own."""
    config = files.at(repository / "config")
    lines = ["[core]", "\trepositoryformatversion = 1", "\tbare = true", "[extensions]"]
    for name in ("objectformat", "refstorage"):
        value = _setting(config, f"extensions.{name}", place, apart) if config is not None else ""
        if value:
            lines.append(f"\t{name} = {value}")
    return "\n".join(lines) + "\n"


def _setting(config: Path, name: str, place: Path, apart: Sequence[str]) -> str:
    done = subprocess.run(
        [_git(apart), "config", "--file", str(config), "--no-includes", "--get", name],
        capture_output=True,
        timeout=_SECONDS,
        env=_environment(place),
        cwd=place,
        check=False,
    )
    value = done.stdout.decode("utf-8", "replace").strip()
    return value if value.isalnum() else ""


def _git(apart: Sequence[str]) -> str:
    found = find_program("git", apart)
    if found is None:
        raise CannotJudge("git is not installed here")
    return found


def _environment(place: Path) -> dict[str, str]:
    return {
        "PATH": os.defpath,
        "HOME": str(place),
        "GIT_DIR": str(place),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_ALLOW_PROTOCOL": "",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_TERMINAL_PROMPT": "0",
        "LC_ALL": "C",
    }
