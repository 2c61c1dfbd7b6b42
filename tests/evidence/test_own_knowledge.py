"""Answers without any call: knowledge of the world passes, figures about files that are here do not."""

from __future__ import annotations

import pytest

from artoo.evidence.facts import own_knowledge
from artoo.ports.evidence import FileView


class Directory:
    """A project that holds `src`, `docs` and `people.csv`. Implements what of EvidenceSource is asked for."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def file(self, path: str) -> FileView:
        self.asked.append(path)
        return FileView(exists=path in ("src", "docs", "people.csv"))


@pytest.mark.parametrize(
    ("request_text", "answer"),
    [
        ("How many Python files (.py) are in the directory src and below?", "There are 10 Python files in src."),
        ("Wie viele Seiten hat docs?", "Es sind 12 Seiten."),
        ("src 目录下有多少个文件？", "共有 17 个文件。"),
        ("What is the average age in people.csv?", "It is 41.8."),
    ],
)
async def test_a_figure_about_what_is_here_needs_a_call(request_text: str, answer: str) -> None:
    """Also where the request names a directory by a plain word."""
    fact = await own_knowledge(answer, (request_text,), Directory())  # pyright: ignore[reportArgumentType]
    assert fact is not None and fact.contradicts


@pytest.mark.parametrize(
    ("request_text", "answer"),
    [
        ("In which year did the Berlin wall fall?", "In 1989."),
        ("How many legs has a spider?", "A spider has 8 legs."),
        ("Is src a good name for a directory of sources?", "Yes, it is common."),
    ],
)
async def test_knowledge_of_the_world_needs_none(request_text: str, answer: str) -> None:
    """And no more than some forty names are looked for on disk."""
    here = Directory()
    assert await own_knowledge(answer, (request_text + " word" * 500,), here) is None  # pyright: ignore[reportArgumentType]
    assert len(here.asked) <= 60
