"""Whatever the notes name of the code is there: files, tests, modules, classes, members, settings, words."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from functools import cache
from pathlib import Path

import pytest
from pydantic import BaseModel

from artoo.runtime.config import Config

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "artoo"
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *(path for path in sorted((ROOT / "docs").rglob("*.md")) if path.name != "figures.md"),
]
"""All but `figures.md`, which names what was tried and taken out."""

_FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_SPAN = re.compile(r"`([^`\n]+)`")
_FILE = re.compile(r"(?:[\w.-]+/)*[\w.-]+\.(?:py|sql|js|css|html|toml|jsonl)(?:::\w+)?")
_DOTTED = re.compile(r"(?!\w+\.(?:md|csv|txt|yaml|json|typed|1)$)[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+")
_CLASS = re.compile(r"(?:[A-Z][a-z]+){2,}")
_SNAKE = re.compile(r"[a-z]\w*_\w+")
_WORD = re.compile(r"\w+")

FOREIGN = frozenset({
    # of Python and other libraries
    "asyncio.Queue", "asyncio.gather", "asyncio.timeout", "asyncio.to_thread", "contextlib.aclosing",
    "gc.freeze", "sys.exit", "sys.setprofile",
    # of git, the kernel and SQL
    "config.worktree", "core.hooksPath", "gc.log", "gc.pid", "memory.events", "memory.max", "pids.events",
    "index.lock", "pids.max", "memory.oom.group", "synchronize_rcu_expedited", "current_user",
    "pg_current_wal_lsn", "pg_dump",
    # of OpenTelemetry and of protocols
    "gen_ai.evaluation.result", "resource_link", "CancelTask", "count_the_stones",
    # of the suites that were run, and of those who wrote their tasks
    "test_error_handling", "test_image_content", "test_sampling", "test_simple_prompt", "test_simple_text",
    "test_missing_capability", "test_tool_with_logging", "test_tool_with_progress", "Wallet.balance",
    # of another system, of the paper, and what an example calls its files
    "AppData", "audit.jsonl", "photo.png",
})  # fmt: skip
"""What the notes name that is not artoo's."""


def spans(page: Path) -> list[str]:
    """What stands in a page as code, outside blocks, each once."""
    return list(dict.fromkeys(_SPAN.findall(_FENCED.sub("", page.read_text(encoding="utf-8")))))


@cache
def files() -> frozenset[str]:
    """Every file of the project, from its root."""
    kept = ("src", "tests", "benchmarks", "docs")
    paths = [path for folder in kept for path in (ROOT / folder).rglob("*") if path.is_file()]
    return frozenset(path.relative_to(ROOT).as_posix() for path in [*paths, *ROOT.glob("*.*")])


@cache
def words() -> frozenset[str]:
    """Every word of the program, its tests and its measurements."""
    endings = (".py", ".sql", ".js", ".html", ".css", ".yaml", ".md", ".toml", ".json")
    texts = (ROOT / name for name in files() if name.endswith(endings) and not name.startswith("docs/"))
    found = {
        word for path in texts if path != Path(__file__) for word in _WORD.findall(path.read_text(encoding="utf-8"))
    }
    return frozenset(found)


def names_in(node: ast.AST) -> set[str]:
    """Names, attributes and functions anywhere in it."""
    found: set[str] = set()
    for each in ast.walk(node):
        match each:
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.FunctionDef(name=name):
                found.add(name)
            case ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name) | ast.alias(name=name):
                found.add(name)
            case _:
                pass
    return found


@cache
def members() -> dict[str, set[str]]:
    """By a class's or module's own name and every longer one: what is named in it."""
    found: dict[str, set[str]] = defaultdict(set)
    for path in SOURCE.rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        parts = [part for part in path.relative_to(SOURCE).with_suffix("").parts if part != "__init__"]
        for start in range(len(parts)):
            found[".".join(parts[start:])] |= names_in(tree)
            for end in range(start + 1, len(parts)):
                found[".".join(parts[start:end])].add(parts[end])
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                found[node.name] |= names_in(node)
    for name, has in list(found.items()):  # what a class has from another one
        for base in has & found.keys():
            found[name] = found[name] | found[base] if base[:1].isupper() and name[:1].isupper() else found[name]
    return found


def is_file(name: str) -> bool:
    """A file by the end of its path, with the test in it if one is named."""
    path, _, test = name.partition("::")
    path = path.removeprefix("artoo/")
    found = [each for each in files() if each == path or each.endswith(f"/{path}")]
    return any(not test or f"def {test}(" in (ROOT / each).read_text(encoding="utf-8") for each in found)


def is_member(name: str) -> bool:
    """`module.name`, `Class.member`, or a setting by its place: each part in the one before."""
    parts = [part for part in name.split(".") if part != "artoo"]
    if len(parts) < 2:
        return parts[0] in words() if parts else True
    return any(parts[end] in members().get(".".join(parts[:end]), ()) for end in range(1, len(parts)))


def is_setting(name: str) -> bool:
    """A place in `config.yaml`."""
    section: object = Config
    for part in name.split("."):
        fields = {} if not isinstance(section, type) or not issubclass(section, BaseModel) else section.model_fields
        found = fields.get(part) or fields.get(f"{part}_")
        if found is None:
            return False
        section = found.annotation
    return True


def missing(span: str) -> bool:
    """Whether it is the name of something that is nowhere."""
    name = re.sub(r"\(.*\)$", "", span)
    if name in FOREIGN:
        return False
    if _FILE.fullmatch(name):
        return not is_file(name) and not _is_said(name)
    if _DOTTED.fullmatch(name):
        return not is_member(name) and not is_setting(name) and not _is_said(name)
    if _CLASS.fullmatch(name):
        return name not in members() and name not in words()
    return _SNAKE.fullmatch(name) is not None and name not in words()


def _is_said(name: str) -> bool:
    """A file that artoo makes, a metric: a name that the program has as a text."""
    return name in _texts()


@cache
def _texts() -> str:
    """All sources in one text."""
    return "\n".join(
        path.read_text(encoding="utf-8") for path in sorted(SOURCE.rglob("*")) if path.suffix in {".py", ".yaml"}
    )


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_what_a_page_names_is_there(page: Path) -> None:
    """A name that moved or went away is not left in the notes."""
    assert [span for span in spans(page) if missing(span)] == []


@pytest.mark.parametrize(
    "name",
    ["loops/fast/gone.py", "tests/docs/test_named_in_code.py::test_gone", "FinalResult.gone", "is_gone_for_good"],
)
def test_what_is_gone_would_be_found(name: str) -> None:
    """Of each kind one."""
    assert missing(name)
