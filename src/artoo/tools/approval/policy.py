"""Parse and match permission lines (`allow:`), by kind, pattern, host or tool, and refuse too wide ones.

Each line permits one kind of operation. No line permits everything.

    policy  = ("create" | "edits" | "delete" | "mode" | "link" | "history") PATTERN
            | "network" HOST[:PORT] | "credential" VARIABLE | "recipient" ADDRESS | "tool" NAME
            | "skill" FOLDER | "read" PLACE | "environment" VARIABLE

PATTERN is a path in the project, or an absolute path (`/…`, `~/…`). `*`, `?` and `[…]` match within one path
component, `**` matches any depth. HOST and ADDRESS may begin with `*.` or `*@`. HOST without a port means https and
http. NAME may end in `*` after a colon (`mcp:notes:*`). `edits` permits to overwrite or move an existing file
(`overwrite` is read as `edits`). `history` is about the files of git (`history .git/**`). FOLDER is the folder of a
project's skill, as the question about the skill shows it. There `*` matches any characters (`skill
.agents/skills/*`). VARIABLE is an environment variable. `credential` permits commands that reach the network to
read it. PLACE is the full path of a file or directory. `read` makes it, with everything below it, readable for the
task, even in a closed part of the home directory (`world.closed`). `environment` makes a variable readable for the
task in the same way.
"""

from __future__ import annotations

import fnmatch
import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from artoo.contracts.changes import path_bytes
from artoo.contracts.confirmation import AskedAct
from artoo.contracts.errors import ConfigurationError, ToolError
from artoo.ports.sandbox import Opened
from artoo.sandbox.network.allowlist import WEB_PORTS, NotAHost, Permit, destination
from artoo.tools.files.glob_patterns import PathPattern, path_pattern

FILE_KINDS = ("create", "edits", "delete", "mode", "link", "history")
OTHER_KINDS = ("network", "credential", "recipient", "tool", "skill")
OPENING_KINDS = ("read", "environment")
"""Kinds that open a path or a variable to a task from its start. The other kinds permit single operations."""
_KINDS = (*FILE_KINDS, *OTHER_KINDS, *OPENING_KINDS)
_WILD = re.compile(r"[*?\[{]")
_TOO_WIDE = re.compile(r"(~|/(home|Users)/[^/]+)?/?[*?/.\[\]{},]*")
_TOOL = re.compile(r"[A-Za-z_][\w.-]*((:[\w.-]+)*|(:[\w.-]+)+:\*)")
_VARIABLE = re.compile(r"[A-Za-z_]\w*")
_ADDRESS = re.compile(r"(\*|[\w.+-]+)@[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)+")


@dataclass(frozen=True, slots=True)
class Policy:
    """A parsed rule. `line` is its normalized text. `argument` is the text after the kind."""

    line: str
    kind: str
    argument: str

    def covers(self, act: AskedAct, project: Path, home: Path) -> bool:
        """Check whether this line permits the operation."""
        # A sensitive path is covered only if the argument names it in full, without wildcards.
        if act.verb != self.kind:
            return False
        if self.kind == "tool":
            return fnmatch.fnmatchcase(act.target.split(" ", 1)[0], self.argument)
        if self.kind == "credential":
            return act.target == self.argument
        if self.kind == "network":
            return _permits(self.argument, act.target)
        if self.kind in OTHER_KINDS:
            return fnmatch.fnmatchcase(act.target.casefold(), self.argument.casefold())
        if act.sensitive and _WILD.search(self.argument):
            return False
        path = path_bytes(act.target).decode("utf-8", "surrogateescape")
        return self.pattern(project, home).matches(path.lstrip("/"))

    def pattern(self, project: Path, home: Path) -> PathPattern:
        """Convert the argument to an anchored regular expression over absolute paths."""
        # Wildcard characters in the path of the project or home are escaped.
        text = self.argument
        if text.startswith("/"):
            return path_pattern(f".{text}")
        base, below = (home, text[2:]) if text.startswith("~/") else (project, text)
        literal = re.sub(r"([*?\[{])", r"[\1]", str(base))
        return path_pattern(f".{literal}/{below.removeprefix('./')}")


def parse_policy(line: str) -> Policy:
    """Parse one line. Raises ConfigurationError with the problem."""
    kind, _, argument = line.strip().partition(" ")
    argument = argument.strip()
    kind = "edits" if kind == "overwrite" else kind
    if kind not in _KINDS:
        known = ", ".join(_KINDS)
        raise ConfigurationError(f"{line!r} does not begin with a kind of act; the kinds are: {known}")
    if not argument:
        raise ConfigurationError(f"{line!r} names no {_named(kind)}; as in: {_EXAMPLES[kind]}")
    problem = _problem(kind, argument)
    if problem is not None:
        raise ConfigurationError(f"{line!r}: {problem}; as in: {_EXAMPLES[kind]}")
    policy = Policy(f"{kind} {argument}", kind, argument)
    if kind in FILE_KINDS and (place := covered_whole(policy)) is not None:
        raise ConfigurationError(
            f"{line!r}: it would cover {place}; name a directory or an ending; as in: {_EXAMPLES[kind]}"
        )
    return policy


_ANYTHING = ("alpha", "Beta9", "g.h.txt", "δ-elta", "_x", "0", "some name.md", "Zebra.tar.gz")
"""Sample names that have nothing in common. A pattern that matches at least half of them counts as a pattern that
matches everything."""

_TOP = ("home", "root", "Users", "var", "srv", "opt", "mnt", "media")


def covered_whole(policy: Policy) -> str | None:
    """Return the directory that a pattern covers almost completely (the project, a home directory, or the parent of
    all homes), or None."""
    # The text of a pattern does not show how much it covers, so the pattern is tested on sample paths below each
    # such directory.
    home, project = Path("/home/somebody"), Path("/home/somebody/files/project")
    own = Path(os.path.realpath(Path.home()))
    places = {
        "the whole project": project,
        "a whole home": home,
        "the whole home": own,
        "root's whole home": Path("/root"),
    }
    for name, place in places.items():
        if _takes_most(policy, (f"{place}/{one}" for one in _ANYTHING), project, home if place == home else own):
            return name
        below = [f"{place}/{one}/{two}" for one in _ANYTHING for two in _ANYTHING]
        if _takes_most(policy, below, project, home if place == home else own):
            return name
    tops = [f"/{top}/{one}/{two}" for top in _TOP for one in _ANYTHING for two in _ANYTHING]
    return "everything" if _takes_most(policy, tops, project, own) else None


def _takes_most(policy: Policy, paths: Iterable[str], project: Path, home: Path) -> bool:
    listed = list(paths)
    pattern = policy.pattern(project, home)
    return 2 * sum(pattern.matches(path.lstrip("/")) for path in listed) >= len(listed)


def _named(kind: str) -> str:
    named = {
        "network": "host",
        "credential": "variable",
        "environment": "variable",
        "recipient": "address",
        "tool": "tool",
    }
    return named.get(kind, "path")


_EXAMPLES = {
    "create": "create notes/**",
    "edits": "edits src/**",
    "history": "history .git/**",
    "delete": "delete build/*.o",
    "mode": "mode scripts/*.sh",
    "link": "link data/latest",
    "network": "network api.example.org",
    "credential": "credential GITHUB_TOKEN",
    "recipient": "recipient *@example.org",
    "tool": "tool mcp:notes:search",
    "skill": "skill .agents/skills/release-notes",
    "read": "read ~/.bashrc",
    "environment": "environment DATABASE_URL",
}


def _problem(kind: str, argument: str) -> str | None:
    if kind == "tool":
        return None if _TOOL.fullmatch(argument) else "that is not the name of a tool"
    if kind == "network":
        return _problem_with_host(argument)
    if kind in ("credential", "environment"):
        return None if _VARIABLE.fullmatch(argument) else "that is not the name of a variable"
    if kind == "recipient":
        return _problem_with_address(argument)
    if kind == "read":
        return _problem_with_place(argument)
    if _TOO_WIDE.fullmatch(argument):
        return "it would cover everything; name a directory or an ending"
    if ".." in argument.split("/"):
        return "a pattern may not hold '..'"
    try:
        path_pattern(argument)
    except (ToolError, re.error) as error:
        return str(error)
    return None


def _problem_with_address(argument: str) -> str | None:
    if not _ADDRESS.fullmatch(argument):
        return "that is not a mail address"
    from publicsuffixlist import PublicSuffixList

    everybody = argument.startswith("*@") and PublicSuffixList().is_public(argument[2:].casefold())
    return "it would cover a whole registry of domains; name one" if everybody else None


def _problem_with_place(argument: str) -> str | None:
    if _WILD.search(argument):
        return "what is opened is named in full, without wildcards"
    if not argument.startswith(("/", "~/")) or ".." in argument.split("/"):
        return "name the place from / or ~/"
    if len([part for part in argument.split("/") if part not in ("", ".", "~")]) == 0:
        return "it would open everything; name one file or directory"
    return None


def _problem_with_host(argument: str) -> str | None:
    try:
        permit = Permit.parse(argument)
    except NotAHost as error:
        return f"that is not a host: it {error}"
    return "it would cover a whole registry of domains; name one" if _is_too_wide(permit) else None


def _is_too_wide(permit: Permit) -> bool:
    """Check whether anyone can register domains below this suffix (publicsuffix.org), so that the rule would cover
    hosts of strangers."""
    if not permit.subdomains:
        return False
    from publicsuffixlist import PublicSuffixList

    return "." not in permit.host or bool(PublicSuffixList().is_public(permit.host))


def _permits(argument: str, target: str) -> bool:
    """Check whether a rule covers a host. `target` contains a port if it comes from a command, and none if it comes
    from another operation."""
    permit = Permit.parse(argument)
    try:
        goal = destination(target, permit.port or WEB_PORTS[0])
    except NotAHost:
        return False
    return permit.covers(goal)


@dataclass(frozen=True, slots=True)
class Policies:
    """The standing permissions of one task, parsed. Paths are resolved and absolute."""

    listed: tuple[Policy, ...] = ()
    project: Path = Path("/")
    home: Path = Path("/")

    @classmethod
    def parse(cls, lines: Iterable[str], project: Path, home: Path) -> Policies:
        """Parse the permission lines. Raises ConfigurationError for an invalid line."""
        return cls(tuple(parse_policy(line) for line in lines), project, home)

    def opened(self) -> Opened:
        """Return the paths and variables that the rules open to a task from its start."""
        places = (one.argument for one in self.listed if one.kind == "read")
        return Opened(
            tuple(self.home / place[2:] if place.startswith("~/") else Path(place) for place in places),
            frozenset(one.argument for one in self.listed if one.kind == "environment"),
        )

    def covering(self, acts: Sequence[AskedAct]) -> tuple[str, ...]:
        """Return the rules that together permit all of `acts`. Return nothing if one of them is not permitted."""
        used: dict[str, None] = {}
        for act in acts:
            line = next((one.line for one in self.listed if one.covers(act, self.project, self.home)), None)
            if line is None:
                return ()
            used[line] = None
        return tuple(used)
