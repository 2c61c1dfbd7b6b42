"""What the page itself says, in both languages."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from string import Formatter

import pytest

from artoo.cli.display.messages import directive_name, in_language, role_name
from artoo.contracts.agents import BoardState
from artoo.contracts.confirmation import Consent
from artoo.contracts.roles import Role
from artoo.contracts.settling import ChangeClass
from artoo.contracts.solution import Decided, Directive, Loss
from artoo.web import words
from artoo.web.words import tables, words_for
from artoo.web.words.said import Named, Said, Spoken
from artoo.words.names import led_to

ENGLISH, CHINESE = words_for("en", ""), words_for("zh", "")
SAID = [(name, said) for kind in words.Words.__mro__ for name, said in vars(kind).items() if isinstance(said, Said)]
NAMED = [found for found in vars(tables).values() if isinstance(found, Named)]


def fields(text: str) -> Counter[str]:
    """What is filled in, and how."""
    return Counter(f"{name}:{spec}" for _, name, spec, _ in Formatter().parse(text) if name is not None)


def test_every_sentence_is_there_in_both_languages_with_the_same_fields() -> None:
    """Nothing is empty, nothing is filled in here and not there, and no name is said twice."""
    assert len(SAID) > 150
    assert [name for name, count in Counter(name for name, _ in SAID).items() if count > 1] == []
    for said in [*(said for _, said in SAID), *(said for named in NAMED for said in named.names.values())]:
        english, chinese = said.texts["en"], said.texts["zh"]
        assert english.strip() and chinese.strip() and fields(english) == fields(chinese), english
        assert max(chinese) >= "\u4e00" or chinese.isascii(), chinese


def test_every_sentence_is_used() -> None:
    """In a template or in code: what nothing says is not kept."""
    folder = Path(words.__file__).parents[1]
    texts = [path.read_text() for path in (*folder.glob("templates/*.html"), *folder.glob("*.py"))]
    used = set(re.findall(r"(?:\bt|words|words_of\(request\))\.([a-z_]+)", "\n".join(texts)))
    states = {"running", "not_ended", "interrupted", *(each.value for each in Directive)}  # `t[state]`
    assert {name for name, _ in SAID} - used - states == set()


@pytest.mark.parametrize(
    ("named", "names"),
    [
        (tables.CLASSES, ChangeClass),
        (tables.CONSENTS, Consent),
        (tables.BOARD, BoardState),
        (tables.DIRECTIVES, Directive),
    ],
)
def test_whatever_code_can_name_has_a_word(named: Named, names: type[BoardState]) -> None:
    """Every value of the enumerations that pages show."""
    assert {each.value for each in names} == set(named.names)


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_terminal_and_the_page_call_things_by_the_same_names(language: str) -> None:
    """Roles, and what the control law decides: somebody who watches one task in both reads one thing."""
    page, terminal = words_for(language, ""), in_language(language)
    figures = dict.fromkeys(
        ("grad_equal_cost", "grad_paper", "grad_l", "logical_failures", "environmental_failures"), 0
    )
    decided = Decided.model_validate({"round": 1, "directive": "success", "loss": Loss(), "criteria": 1, **figures})
    assert led_to(decided, language) == page.led_to(decided) != page.directive("success")
    for role in Role:
        assert role_name(role.value, terminal) == page.role(role.value)
    for directive in Directive:
        assert directive_name(directive.value, terminal) == page.directive(directive.value)


def test_a_name_without_a_word_stands_as_it_is() -> None:
    """A role of a newer log is shown by its own name."""
    assert ENGLISH.role("stranger") == "stranger" and CHINESE.role(Role.SOLVER.value) == "求解者"


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
    chosen: Spoken = words_for(cookie, accepted)
    assert chosen.language == language
