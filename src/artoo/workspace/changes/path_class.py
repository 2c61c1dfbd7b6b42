"""Classifies where a path lies: functions over real, absolute byte paths, after one look at the user's links.

The lists here name what is dangerous anywhere in the home. What may take effect unasked is decided elsewhere, by a
positive rule (`silent_rule`).
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field, replace
from pathlib import Path

from artoo.contracts.changes import PathClass
from artoo.ports.sandbox import Roots
from artoo.sandbox.reading.hidden_paths import Closed
from artoo.sandbox.reading.path_set import PathSet, upwards
from artoo.sandbox.reading.programs import worked_in
from artoo.workspace.changes.import_paths import SearchPaths
from artoo.workspace.changes.symlink_targets import directories_with_names, links_in, targets_of

_HOME_PERSISTENCE = re.compile(
    rb"(\.(bash|zsh|ksh|csh|tcsh|fish|mksh)[\w.-]*|\.z(shrc|shenv|profile|login|logout)|\.profile|\.login|\.logout"
    rb"|\.inputrc|\.env|\.environment|\.pam_environment|\.xinitrc|\.xprofile|\.xsession(rc)?|\.xsessionrc|\.Xresources"
    rb"|\.gitconfig|\.gitattributes|\.hgrc|\.vimrc|\.gvimrc|\.exrc|\.emacs|\.emacs\.d/.*|\.vim/.*|\.nanorc|\.tmux\.conf"
    rb"|\.screenrc|\.gdbinit|\.lldbinit|\.pythonrc(\.py)?|\.pdbrc|\.irbrc|\.pryrc|\.Rprofile|\.psqlrc|\.sqliterc"
    rb"|\.curlrc|\.wgetrc|\.npmrc|\.condarc|\.bazelrc|\.forward|\.procmailrc|\.mailcap|\.direnvrc"
    rb"|\.config/(autostart|systemd|fish|environment\.d|git|nvim|direnv|plasma-workspace|upstart|hypr|sway|i3|pip"
    rb"|Code|Cursor|VSCodium|zed|nushell|powershell|containers|mpv|awesome|openbox|user-tmpfiles\.d)(/.*)?"
    rb"|\.local/(bin|lib)(/.*)?|\.local/share/(applications|systemd|dbus-1|bash-completion|fish|nautilus|kservices5)(/.*)?"
    rb"|bin(/.*)?|\.(cargo|go|npm-global|yarn|deno|bun|volta|rbenv|pyenv|asdf|nvm)/(bin|shims)(/.*)?|\.cargo/config(\.toml)?"
    rb"|\.pip/.*|\.ipython/.*|\.jupyter/.*|\.docker/.*|\.gradle/init.*|\.m2/settings\.xml|\.local/state/cron/.*"
    rb"|\.(claude|codex|cursor|gemini|copilot|aider|continue|windsurf|vscode|vscode-server)(/.*|[\w.]*)|\.claude\.json"
    rb"|Library/(LaunchAgents|LaunchDaemons|Services|Scripts|Application Scripts|Preferences|Workflows)(/.*)?"
    rb"|\.config/(artoo)(/.*)?)",
    re.DOTALL,
)
_ANYWHERE_PERSISTENCE = re.compile(
    rb"(^|.*/)("
    rb"\.git/(hooks|config|config\.worktree|info/attributes|modules/.*/(hooks|config))(/.*)?|\.git"
    rb"|\.git/(commondir|gitdir|worktrees/[^/]+/(commondir|gitdir|config\.worktree))"
    rb"|\.hg/(hgrc|hgrc-not-shared|sharedpath)|\.(jj|sl)/([^/]+/)?config(\.toml)?"
    rb"|\.(gitmodules|gitattributes|envrc|bazelrc|mise\.toml|pre-commit-config\.yaml|npmrc|yarnrc|yarnrc\.yml|pnpmfile\.[cm]?js)"
    rb"|\.?lefthook(-local)?\.(ya?ml|toml|json)|prek\.toml|bunfig\.toml|\.bundle/config"
    rb"|\.(husky|githooks|vscode|idea|fleet|zed|claude|codex|cursor|gemini|windsurf|continue|devcontainer|roo|cline)(/.*)?"
    rb"|\.(kiro|amazonq|qwen|junie|trae|augment|opencode|openhands|goose|aider|mise)(/.*)?|\.?mise(\.local)?\.toml|\.rtx\.toml|mise/config\.toml"
    rb"|\.(agents?|artoo/skills|clinerules|kilocode|factory|crush|amp|helix|vs|vscodium|theia|lapce)(/.*)?|\.?crush\.json|[^/]+\.(code-workspace|sublime-project)"
    rb"|\.(cursorrules|windsurfrules|roorules|roomodes|rules|aider\.conf\.yml|mcp\.json|devcontainer\.json|vimrc|exrc|nvimrc|nvim\.lua)"
    rb"|\.github/(workflows|actions|instructions|prompts|agents|skills|hooks|chatmodes|copilot-instructions\.md)(/.*)?"
    rb"|\.(gitea|forgejo)/(workflows|actions)(/.*)?|jupyter[a-z_]*_config\.(py|json)"
    rb"|\.(Rprofile|Renviron|gdbinit|lldbinit|irbrc|pryrc|pdbrc|octaverc|ghci|ocamlinit|iex\.exs|erlang|ycm_extra_conf\.py|vimspector\.json)|\.cargo/config(\.toml)?"
    rb"|\.mvn/(jvm\.config|maven\.config|extensions\.xml)|\.(circleci|buildkite|woodpecker)(/.*)?|\.direnv(/.*)?|\.dir-locals(-2)?\.el|\.lvimrc"
    rb"|(AGENTS?|CLAUDE|GEMINI|QWEN|CRUSH|WARP)(\.(local|override))?\.md|opencode\.jsonc?|\.goosehints"
    rb"|\.(gitlab-ci|travis|drone|woodpecker|gitpod|overcommit)\.ya?ml|(azure|bitbucket)-pipelines\.ya?ml|Jenkinsfile|\.perldb"
    rb"|sitecustomize\.py|usercustomize\.py|[^/]+\.pth"
    rb"|crontab|cron\.(d|daily|hourly|weekly|monthly)(/.*)?"
    rb"|[^/]+\.(desktop|plist|service|timer)"
    rb")",
    re.DOTALL,  # a line end in a name must not hide the rest of the path
)

_SENSITIVE = (PathClass.ARTOO, PathClass.PERSISTENCE, PathClass.SECRET)
"""In this order: the most sensitive first."""


@dataclass(frozen=True, slots=True)
class Places:
    """The directories that decide a path's class. Real, absolute, as bytes.

    `persistent` and `secret`: where links lead that have such a class themselves; artoo's own modules are among the
    persistent ones. `worked_in`: directories from which artoo starts no program for itself.
    """

    home: bytes
    workspace: bytes
    project: bytes
    artoo: bytes
    hidden: Closed = field(compare=False)
    persistent: PathSet = field(default=PathSet(()), compare=False)
    secret: PathSet = field(default=PathSet(()), compare=False)
    searched: SearchPaths = field(default=SearchPaths(), compare=False)
    worked_in: tuple[str, ...] = field(default=(), compare=False)
    _narrow: tuple[bool, bool] = field(init=False, compare=False)
    """True for workspace and for project if it does not hold the home."""

    def __post_init__(self) -> None:
        narrow = (not _inside(self.home, self.workspace), not _inside(self.home, self.project))
        object.__setattr__(self, "_narrow", narrow)

    @classmethod
    def of(cls, roots: Roots, artoo_home: Path) -> Places:
        home, workspace, project, artoo = (
            os.fsencode(os.path.realpath(path))  # cheaper than Path.resolve
            for path in (roots.home, roots.workspace, roots.project, artoo_home)
        )
        hidden = Closed.of(roots)
        return cls(home, workspace, project, artoo, hidden, worked_in=worked_in(roots))._with_links()

    def _with_links(self) -> Places:
        """Add what the user's own links of such names lead to."""
        home, project, workspace = map(os.fsdecode, (self.home, self.project, self.workspace))
        persistent: set[str] = set()
        secret: set[str] = set()
        for link in links_in(directories_with_names(home, (project, workspace), self._starts_programs)):
            kind = self.classify(os.fsencode(link))
            if kind is PathClass.PERSISTENCE:
                persistent.update(targets_of(link))
            elif kind is PathClass.SECRET:
                secret.update(targets_of(link))
        # A link to the home itself, or to all of the project, says nothing about what lies there.
        whole, wholes = set(upwards(home)), {*upwards(home), *upwards(project), *upwards(workspace)}
        searched = SearchPaths.of(project, os.fsdecode(self.artoo))
        started = (persistent - whole) | (searched.modules - wholes)
        return replace(self, persistent=PathSet(started), secret=PathSet(secret - wholes), searched=searched)

    def _starts_programs(self, path: str) -> bool:
        raw = os.fsencode(path)
        return self._persists(raw, path, _below(raw, self.home))

    def classify(self, path: bytes) -> PathClass:
        """Return the class of a real absolute path: the most sensitive of all its names (bind mounts)."""
        name, below_home = os.fsdecode(path), _below(path, self.home)
        rank = self._sensitive(path, name, below_home)
        for other in self.hidden.other_names(name):
            raw = os.fsencode(other)
            rank = min(rank, self._sensitive(raw, other, _below(raw, self.home)))
        if rank < len(_SENSITIVE):
            return _SENSITIVE[rank]
        return self._bounds(path, below_home) or (PathClass.OUTSIDE if below_home is None else PathClass.HOME)

    def _sensitive(self, path: bytes, name: str, below_home: bytes | None) -> int:
        """Return the index of the sensitive class of one name of a path; their count for none."""
        if _inside(path, self.artoo):
            return 0
        if self._persists(path, name, below_home):
            return 1
        if self.hidden.homes[0].covers(name) or self.secret.cover(name):
            return 2
        return len(_SENSITIVE)

    def is_hidden(self, path: bytes) -> bool:
        """True if commands and tools may not read a real absolute path (`sandbox.reading.hidden_paths`)."""
        names = self.hidden.names(os.fsdecode(path))
        return any(_inside(os.fsencode(one), self.artoo) for one in names) or self.hidden.covers(names[0])

    def within_bounds(self, path: bytes) -> bool:
        """True if a path lies in project or output folder, whatever its class."""
        return self._bounds(path, _below(path, self.home)) is not None

    def below_bounds(self, path: bytes) -> bytes | None:
        """Return the part of a path below project or output folder; None when it is outside of both."""
        match self._bounds(path, _below(path, self.home)):
            case PathClass.WORKSPACE:
                return _below(path, self.workspace)
            case PathClass.PROJECT:
                return _below(path, self.project)
            case _:
                return None

    def _persists(self, path: bytes, name: str, below_home: bytes | None) -> bool:
        if below_home is not None and _HOME_PERSISTENCE.fullmatch(below_home):
            return True
        if self.searched.find(path) or _ANYWHERE_PERSISTENCE.fullmatch(path):
            return True
        return self.persistent.cover(name)

    def _bounds(self, path: bytes, below_home: bytes | None) -> PathClass | None:
        """Return workspace, project or None.

        A project that is the home itself gives no rights over the home's hidden directories; a project or workspace
        that holds the home gives none at all.
        """
        narrow_workspace, narrow_project = self._narrow
        if narrow_workspace and _inside(path, self.workspace):
            return PathClass.WORKSPACE
        if narrow_project:
            return PathClass.PROJECT if _inside(path, self.project) else None
        ordinary = self.home == self.project and below_home and not below_home.startswith(b".")
        return PathClass.PROJECT if ordinary else None


def _inside(path: bytes, directory: bytes) -> bool:
    return _below(path, directory) is not None


def _below(path: bytes, directory: bytes) -> bytes | None:
    """Return the part of `path` below `directory`: empty for the directory itself, None when it is elsewhere."""
    if not path.startswith(directory):
        return None
    end = len(directory)
    if len(path) == end or directory.endswith(b"/"):
        return path[end:]
    return path[end + 1 :] if path.startswith(b"/", end) else None
