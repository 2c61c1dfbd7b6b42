"""What a conversation keeps."""

from __future__ import annotations

from pathlib import Path

import pytest

from artoo.runtime.sessions import open_session


def said(home: Path) -> list[str]:
    return [turn.input for turn in open_session(home, name="x").exchanges]


def test_any_text_is_kept(tmp_path: Path) -> None:
    """Line ends of Unicode stand in text that was copied from a page or a word processor."""
    session = open_session(tmp_path, name="x")
    texts = ["a\u2028b", "a\u2029b", "a\x85b", "a\x1eb", "plain"]
    for number, text in enumerate(texts):
        session.add(text, text, f"t{number}")
    again = open_session(tmp_path, name="x")
    again.add("last", "last", "t9")
    assert said(tmp_path) == [*texts, "last"]


def test_two_windows_on_one_conversation_keep_both(tmp_path: Path) -> None:
    """What the other one said meanwhile stays; what it forgot is forgotten."""
    first = open_session(tmp_path, name="x")
    first.add("one", "1", "t1")
    second = open_session(tmp_path, name="x")
    first.add("two", "2", "t2")
    second.add("three", "3", "t3")
    assert said(tmp_path) == ["one", "two", "three"]
    first.clear()
    second.add("four", "4", "t4")
    assert said(tmp_path) == ["four"]


def test_a_home_that_cannot_be_written_loses_nothing_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was said since stays in the conversation that is open."""
    session = open_session(tmp_path, name="x")
    session.add("one", "1", "t1")

    def full(*_: object, **__: object) -> None:
        raise OSError("no space")

    monkeypatch.setattr("artoo.runtime.sessions.write_whole", full)
    session.add("two", "2", "t2")
    session.add("three", "3", "t3")
    assert [turn.input for turn in session.exchanges] == ["one", "two", "three"]
    assert said(tmp_path) == ["one"]
