"""Check that docs, docstrings, comments and catalogues use no word of the glossary.

    python checks/words.py           fails, with file, line and replacement, where an area has more uses than it may
    python checks/words.py --lower   lowers what each area may have to what is there now

`glossary.json` holds the words with their replacements, and how many uses may remain in areas that are not done.
Every other area must have none. Code in Markdown is not read, because it shows commands and what they print.
"""

from __future__ import annotations

import ast
import io
import json
import re
import sys
import tokenize
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
GLOSSARY = Path(__file__).with_name("glossary.json")
PAGES = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")

Passages = Iterator[tuple[int, str]]
"""First line and text of each passage."""


class Use(NamedTuple):
    """A word of the glossary that a file uses."""

    path: Path
    line: int
    word: str


def _markdown(text: str) -> Passages:
    """Yield a page without its code: each fenced, indented or quoted piece is replaced by blanks."""
    fenced = re.sub(r"^( *)```.*?^\1```", _blanks, text, flags=re.MULTILINE | re.DOTALL)
    indented = re.sub(r"(?<=\n\n)(?: {4}.*\n|\n)+", _blanks, fenced)
    yield 1, re.sub(r"`[^`\n]+`|\]\([^)\n]*\)", _blanks, indented)


def _blanks(match: re.Match[str]) -> str:
    return re.sub(r"[^\n]", " ", match.group())


def _python(text: str) -> Passages:
    """Yield docstrings, strings that document a name, and comments."""
    for node in ast.walk(ast.parse(text)):
        if (
            isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Constant)
            and isinstance(node.value.value, str)
        ):
            yield node.lineno, re.sub(r"`[^`\n]+`", _blanks, node.value.value)
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string


def _catalogue(text: str) -> Passages:
    """Yield the English sentences of a gettext catalogue."""
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith(("msgid", '"')):
            yield number, line


def _comments(text: str) -> Passages:
    """Yield the comments of a YAML file."""
    for number, line in enumerate(text.splitlines(), 1):
        yield number, line.partition("#")[2]


READERS: dict[str, Callable[[str], Passages]] = {
    ".md": _markdown,
    ".py": _python,
    ".po": _catalogue,
    ".yaml": _comments,
}
SAMPLES = {".md": "# {}\n", ".py": '"""{}"""\n', ".po": 'msgid "{}"\n', ".yaml": "a: 1  # {}\n"}
"""The smallest file of each kind that uses a word."""


def areas() -> dict[str, list[Path]]:
    """Return the files of the documentation, of each package, and of the laboratory."""
    found = {"docs": [*(ROOT / name for name in PAGES), *sorted((ROOT / "docs").rglob("*.md"))]}
    for folder in (*sorted((ROOT / "src" / "artoo").iterdir()), ROOT / "lab"):
        files = [path for path in sorted(folder.rglob("*")) if path.suffix in READERS]
        if files:
            found[folder.name] = files
    return found


def pattern_of(words: dict[str, str]) -> re.Pattern[str]:
    """Return a pattern that matches each word as a whole, also across the end of a line."""
    joined = "|".join(re.escape(word).replace(r"\ ", r"\s+") for word in sorted(words, key=len, reverse=True))
    return re.compile(rf"\b(?:{joined})\b", re.IGNORECASE)


def uses(path: Path, text: str, pattern: re.Pattern[str]) -> Iterator[Use]:
    """Yield every use of the glossary's words in the prose of a file."""
    for first, passage in READERS[path.suffix](text):
        for match in pattern.finditer(passage):
            line = first + passage.count("\n", 0, match.start())
            yield Use(path, line, " ".join(match.group().lower().split()))


def prove(words: dict[str, str], pattern: re.Pattern[str]) -> None:
    """Raise AssertionError unless every word is found in every kind of file, so that no empty check passes."""
    assert len(words) > 20, "the glossary has lost its words"
    assert READERS.keys() == SAMPLES.keys()
    for suffix, sample in SAMPLES.items():
        for word in words:
            found = [use.word for use in uses(Path("sample" + suffix), sample.format(word), pattern)]
            assert found == [word], f"{word!r} is not found in a {suffix} file: {found}"


def main() -> int:
    """Compare, or lower what remains. Return the exit code."""
    glossary = json.loads(GLOSSARY.read_text(encoding="utf-8"))
    words: dict[str, str] = glossary["words"]
    remaining: dict[str, int] = glossary["remaining"]
    pattern = pattern_of(words)
    prove(words, pattern)
    found: defaultdict[str, list[Use]] = defaultdict(list)
    for area, files in areas().items():
        for path in files:
            found[area] += uses(path, path.read_text(encoding="utf-8"), pattern)
    if "--lower" in sys.argv[1:]:
        counts = Counter({area: min(len(each), remaining.get(area, 0)) for area, each in found.items()})
        glossary["remaining"] = {area: count for area, count in sorted(counts.items()) if count}
        GLOSSARY.write_text(json.dumps(glossary, indent=2) + "\n", encoding="utf-8")
        return 0
    failed: list[str] = []
    for area, each in found.items():
        if len(each) > remaining.get(area, 0):
            failed += [
                f"{use.path.relative_to(ROOT)}:{use.line}: {use.word!r}: {words[use.word]}" for use in sorted(each)
            ]
            failed.append(
                f"{area}: {len(each)} words of checks/glossary.json, allowed are {remaining.get(area, 0)}"
            )
    sys.stdout.writelines(line + "\n" for line in failed)
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
