"""In which language a page is, and what it calls things."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from artoo import web
from artoo.contracts.agents import BoardState
from artoo.contracts.confirmation import Consent
from artoo.contracts.settling import ChangeClass
from artoo.contracts.solution import Directive
from artoo.web.names import chosen_language, named
from artoo.words.catalogue import in_language


@pytest.mark.parametrize(
    ("kind", "names"),
    [("change", ChangeClass), ("consent", Consent), ("board", BoardState), ("directive", Directive)],
)
def test_whatever_code_can_name_has_a_chinese_word(kind: str, names: type[BoardState]) -> None:
    """Every value of the enumerations that pages show."""
    chinese = in_language("zh")
    for each in names:
        assert not chinese(named(kind, each.value)).isascii(), each


def test_no_template_says_a_word_past_the_catalogue() -> None:
    """So a Chinese page has no English of artoo's own: neither between elements nor in what a reader hears."""
    own = {"artoo", "git", "D", "P", "L", "t", "tool", "glob", "path", "tmp"}
    filled = re.compile(r"\{#.*?#\}|\{%.*?%\}|\{\{.*?\}\}|<(pre|code)>artoo .*?(?=<|$)", re.DOTALL)
    for path in sorted((Path(web.__file__).parent / "templates").glob("*.html")):
        text = filled.sub(" ", path.read_text())
        heard = re.findall(r'(?:aria-label|placeholder|title|alt)="([^"]*)"', text)
        said = " ".join((re.sub(r"<[^>]*>", " ", text), *heard))
        assert {word for word in re.findall(r"[A-Za-z]+", said) if word not in own} == set(), path.name


def test_a_name_without_a_word_stands_as_it_is() -> None:
    """A role of a newer log is shown by its own name."""
    assert in_language("zh")(named("role", "stranger")) == "stranger"


@pytest.mark.parametrize(
    ("cookie", "accepted", "language"),
    [
        ("", "zh-CN,zh;q=0.9,en;q=0.8", "zh"),
        ("", "fr-FR,en;q=0.5,zh;q=0.1", "en"),
        ("", "", "en"),
        ("zh", "en-US", "zh"),
        ("tlh", "zh", "zh"),
    ],
)
def test_the_language_is_chosen_or_the_browsers(cookie: str, accepted: str, language: str) -> None:
    """The cookie first, then the first one of the browser's list that there is."""
    assert chosen_language(cookie, accepted).language == language
