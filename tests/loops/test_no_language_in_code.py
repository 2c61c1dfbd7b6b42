"""Language is read by models, facts by code: every regular expression of these rooms is here, with its grammar."""

from __future__ import annotations

import ast
import unicodedata
from collections.abc import Iterator
from pathlib import Path

import artoo

SOURCE = Path(artoo.__file__).parent
ROOMS = ("loops", "evidence", "verdicts", "agents", "auditor")
FILES = tuple(path for room in ROOMS for path in sorted((SOURCE / room).rglob("*.py")))

GRAMMARS: dict[str, str] = {
    "agents/cognition/knowledge_file.py _MARK": "the mark of an entry: an HTML comment with two hashes",
    "agents/mail/mailbox.py _ACTOR": "an actor's name",
    "agents/identity/identity.py _NAME": "an agent's name",
    "agents/patrol/clock_times.py _CLOCK": "a time of day, with days before it",
    "agents/patrol/clock_times.py _CRON": "the five fields of a cron expression",
    "agents/patrol/clock_times.py _ENDS": "blanks and marks between an item's time and its text",
    "agents/patrol/clock_times.py _ZONE": "the name of a time zone",
    "agents/patrol/clock_times.py _days": "the separators of a list of days",
    "agents/patrol/parser.py _EVERY": "an interval: number and unit",
    "agents/patrol/parser.py _BOX": "a Markdown check box",
    "agents/patrol/parser.py _MARKER": "the two keywords of a patrol file",
    "agents/cognition/similarity.py _PARTICULARS": "exact tokens that are compared by kind: URLs, ids, numbers",
    "agents/cognition/similarity.py _WIDE": "scripts without spaces, for slugs",
    "agents/cognition/similarity.py _WORD": "words, for slugs and similarity",
    "auditor/chain.py _LINE": "a line of the chain: JSON",
    "auditor/layout.py _PART": "a file name of the chain",
    "auditor/logged.py _REFERENCE": "a reference to a blob: JSON",
    "verdicts/checks.py _matches_probe": "the expression of a criterion's own check",
    "verdicts/checks.py _search": "the expression of a criterion's own check",
    "evidence/facts.py _ENDING": "the ending of a file's name",
    "evidence/facts.py _NAME": "a word that may be a directory's name",
    "evidence/grounding.py _DIGITS": "digits",
    "evidence/grounding.py _begins_a_version": "a decimal number of the answer, with no digit beside it",
    "evidence/grounding.py _COMMAS": "what stands between the items of a list in a line",
    "evidence/grounding.py _ELLIPSIS": "where a quotation leaves something out",
    "evidence/grounding.py _LEADING_ZERO": "a number's leading zero",
    "evidence/grounding.py _FILLING": "words or a number between the signs of a line: only its form is compared",
    "verdicts/json_schema.py _pattern": "the expression of a JSON schema",
    "evidence/numerals.py DATE": "a date or a month: 2026-01-05, 2026-01",
    "evidence/numerals.py TIME": "a time of day, and a duration as the shell prints it: 9:05, 23:52:30, 1m30.5s",
    "evidence/numerals.py _APART": "a numeral without marks of thousands, exponent, percent or unit of size",
    "evidence/numerals.py _NUMBER": "a numeral with separators, signs of powers, exponent, percent or unit of size",
    "evidence/numerals.py _PART": "a literal and the sign of a power",
    "evidence/numerals.py _THOUSANDS": "groups of thousands",
    "evidence/numerals.py _UNIT_OPTION": "an option of a command line with a unit of size: -m, -sk",
    "evidence/numerals.py _WRITTEN": "signs that are numbers themselves, as Han has them",
    "evidence/numerals.py _number": "what separates digits",
    "evidence/shown_files.py names_file": "a file's name as a token of its own",
    "evidence/tokens.py _CODE_BLOCK": "a fenced block (Markdown)",
    "evidence/tokens.py _CODE_SPAN": "a code span (Markdown)",
    "evidence/tokens.py _IDENTIFIER": "letters and digits in one token",
    "evidence/tokens.py LIST_MARK": "the mark of a list's item (Markdown)",
    "evidence/tokens.py _READ": "three digits, or a hash",
    "evidence/tokens.py _MAIL": "a mail address",
    "evidence/tokens.py _PATH": "a path",
    "evidence/tokens.py _PIECES": "what separates a name from the text around it",
    "evidence/tokens.py _QUOTES": "a quotation in the quotation marks of any script",
    "evidence/tokens.py _URL": "a URL",
    "evidence/tokens.py _WORD": "words, compared and not read",
    "evidence/worked_out.py _YEAR": "a year in four digits",
    "evidence/worked_out.py _JOINT": "what stands between two numbers of a formula: unit, brackets, sign",
    "loops/medium/advice.py _NAME": "what looks like a path",
    "loops/medium/advice.py _QUOTED": "a quotation in the quotation marks of any script",
    "loops/medium/advice.py _WORD": "a URL or a run of the letters of names",
    "loops/medium/lessons.py _place_in": "a path that ends with a given name",
    "loops/medium/plan_draft.py _WORD": "words, compared and not read",
    "loops/medium/plan_draft.py _mentions": "a name that stands alone in a text",
}
"""File and name of every expression, and its grammar. A new one is reviewed here; none reads a sentence."""


def expressions(path: Path) -> Iterator[str]:
    """Where `re` or `regex` is given an expression: the name that it gets, else the function around it."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for top in ast.walk(tree):
        if isinstance(top, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from (f"{_place(path)} {top.name}" for node in ast.walk(top) if _gives_expression(node))
    for statement in tree.body:
        if isinstance(statement, ast.Assign | ast.AnnAssign):
            target = statement.targets[0] if isinstance(statement, ast.Assign) else statement.target
            for node in ast.walk(statement):
                if _gives_expression(node):
                    yield f"{_place(path)} {ast.unparse(target)}"


def _place(path: Path) -> str:
    return path.relative_to(SOURCE).as_posix()


def _gives_expression(node: ast.AST) -> bool:
    """A call of the module itself: methods of a compiled expression use one that is listed already."""
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
        return False
    module = node.func.value
    return isinstance(module, ast.Name) and module.id in ("re", "regex") and node.func.attr != "escape"


def test_every_expression_has_a_grammar() -> None:
    """No regular expression stands in these rooms that is not listed, and none is listed that is gone."""
    found = {one for path in FILES for one in expressions(path)}
    assert found == set(GRAMMARS)
    assert all(GRAMMARS.values())


def test_no_word_of_a_language_but_its_own() -> None:
    """No word of a script without capitals stands in a string; one letter alone may bound a range."""
    foreign = {_place(path): found for path in FILES if (found := foreign_words(path))}
    assert foreign == {}


def foreign_words(path: Path) -> list[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    documentation = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    return [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documentation
        if len(node.value) > 1 and any(unicodedata.category(letter) == "Lo" for letter in node.value)
    ]
