"""The catalogue of translations is complete, and has nothing that no code says."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from string import Formatter

import jinja2
import jinja2.nodes
import pytest
from jinja2.ext import extract_from_ast

import artoo
from artoo.cli.display.task_state import PHASES
from artoo.contracts.findings import Found, Reason
from artoo.web.names import NAMES
from artoo.words.catalogue import Catalogue, in_language
from artoo.words.names import ASSURANCE, DECIDERS, DIRECTIVES, ROLES
from artoo.words.question import SAID
from artoo.words.settling import CLASSES

SOURCE = Path(artoo.__file__).parent
MADE_BY = {"in_language", "words_of"}
CALLED = {"text", "_text", "words", "_words"}
"""What holds a catalogue, wherever a sentence is said."""

CONSTANTS = set[str]()
"""Every string of the code; filled by `said_in_code`, which parses all of it."""

PO = (SOURCE / "words" / "zh.po").read_text(encoding="utf-8")
CHINESE = in_language("zh")


def said_in_code() -> Iterator[str]:
    """Every sentence that a Python file asks a catalogue for: in place, or by a name that the file gives it."""
    for path in SOURCE.rglob("*.py"):
        nodes = list(ast.walk(ast.parse(path.read_bytes())))
        CONSTANTS.update(
            node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)
        )
        given = dict(pair for node in nodes if isinstance(node, ast.Assign) for pair in names_in(node))
        for call in nodes:
            if isinstance(call, ast.Call) and call.args and asks(call):
                first = call.args[0]
                for part in (first.body, first.orelse) if isinstance(first, ast.IfExp) else (first,):
                    said = part.value if isinstance(part, ast.Constant) else given.get(ast.unparse(part))
                    yield from (said,) if isinstance(said, str) else ()


def names_in(assigned: ast.Assign) -> Iterator[tuple[str, object]]:
    """The names and constants of `name = "text"` and of `one, other = "text", "text"`."""
    match assigned:
        case ast.Assign(targets=[ast.Tuple(elts=names)], value=ast.Tuple(elts=values)):
            pairs = zip(names, values, strict=False)
        case _:
            pairs = ((name, assigned.value) for name in assigned.targets)
    yield from ((ast.unparse(name), said.value) for name, said in pairs if isinstance(said, ast.Constant))


def asks(call: ast.Call) -> bool:
    """True for `text(…)`, `self.text(…)`, `in_language(…)(…)` and `text.count(one, many, number)`."""
    match call.func:
        case ast.Attribute(attr="count", value=ast.Name(id=name) | ast.Attribute(attr=name)):
            return name in CALLED and len(call.args) == 3
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name in CALLED and name not in MADE_BY
        case ast.Call(func=ast.Name(id=name)):
            return name in MADE_BY
        case _:
            return False


def said_in_templates() -> Iterator[str]:
    """Every sentence of the web UI's templates."""
    environment = jinja2.Environment(autoescape=True)
    for path in (SOURCE / "web" / "templates").glob("*.html"):
        parsed = environment.parse(path.read_text())
        for _, _, said in extract_from_ast(parsed, ("t",)):
            found = said if isinstance(said, tuple) else (said,)
            yield from (each for each in found if isinstance(each, str))
        for call in parsed.find_all(jinja2.nodes.Call):  # t.count(one, many, number): the catalogue has the first
            match call:
                case jinja2.nodes.Call(
                    node=jinja2.nodes.Getattr(attr="count"), args=[jinja2.nodes.Const(value=str(one)), *_]
                ):
                    yield one
                case _:
                    pass


def said_in_tables() -> Iterator[str]:
    """Every sentence that is looked up in a table first."""
    for table in (ROLES, DIRECTIVES, DECIDERS, CLASSES, ASSURANCE, PHASES, SAID, *NAMES.values()):
        yield from table.values()
    yield from (Reason(found=found).template for found in Found)


SAID_ANYWHERE = {*said_in_code(), *said_in_templates(), *said_in_tables()}


def fields(text: str) -> Counter[str]:
    """What is filled in, and how."""
    return Counter(f"{name}:{spec}" for _, name, spec, _ in Formatter().parse(text) if name is not None)


def test_every_sentence_that_the_code_says_has_a_chinese_one() -> None:
    """So no English sentence stands on a Chinese page or terminal."""
    assert len(SAID_ANYWHERE) > 450
    assert sorted(said for said in SAID_ANYWHERE if said.strip() and CHINESE.gettext(said) == said) == []


def test_the_catalogue_has_no_sentence_that_nothing_says() -> None:
    """Each of its entries is a string of the code, in a table or in a template."""
    assert [said for said in CHINESE.sentences() if said not in CONSTANTS | SAID_ANYWHERE] == []


def test_a_translation_fills_in_the_same_fields() -> None:
    """None is left out, added or formatted otherwise."""
    for said, translated in CHINESE.sentences().items():
        assert fields(said) == fields(translated), said
        assert max(translated) >= "\u3000" or translated.isascii(), translated


@pytest.mark.parametrize(
    ("language", "said"), [("zh-Hans", "3 轮"), ("zh", "3 轮"), ("en-GB", "3 rounds"), ("fr", "3 rounds")]
)
def test_a_language_is_chosen_by_its_tag_and_english_is_the_rest(language: str, said: str) -> None:
    """A regional tag has the catalogue of its language."""
    assert in_language(language).count("{count} round", "{count} rounds", 3) == said


def test_one_and_several_have_their_forms() -> None:
    """A number is written with its thousands apart."""
    english = Catalogue()
    assert english.count("{count} round", "{count} rounds", 1) == "1 round"
    assert english.count("{count} round", "{count} rounds", 2_000) == "2,000 rounds"


def test_a_sentence_over_several_lines_is_read_whole() -> None:
    """As translators' programs write long ones."""
    po = 'msgid ""\nmsgstr "Language: xx\\n"\n\nmsgid ""\n"a \\"long\\" "\n"one"\nmsgstr ""\n"in "\n"two"\n'
    assert Catalogue("xx", po)('a "long" one') == "in two"
