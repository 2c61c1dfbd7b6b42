"""What a conversation keeps."""

from __future__ import annotations

from pathlib import Path

import pytest

from artoo.runtime.task.conversations import open_session


def no_space(*_: object, **__: object) -> int:
    raise OSError("no space")


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

    monkeypatch.setattr("os.write", no_space)
    session.add("two", "2", "t2")
    session.add("three", "3", "t3")
    assert [turn.input for turn in session.exchanges] == ["one", "two", "three"]
    assert said(tmp_path) == ["one"]


def test_a_line_that_was_cut_costs_no_other(tmp_path: Path) -> None:
    """A disk that was full may end a file in the middle of a line."""
    open_session(tmp_path, name="x").add("one", "1", "t1")
    with (tmp_path / "sessions" / "x.jsonl").open("ab") as file:
        file.write(b'{"input": "hal')
    open_session(tmp_path, name="x").add("two", "2", "t2")
    assert said(tmp_path) == ["one", "two"]


def test_a_long_conversation_stays_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Older exchanges go when the file grows beyond its bound; the latest stay."""
    monkeypatch.setattr("artoo.runtime.task.conversations.LARGEST", 2_000)
    session = open_session(tmp_path, name="x")
    for number in range(50):
        session.add(f"request {number}", "done", f"t{number}")
    assert (tmp_path / "sessions" / "x.jsonl").stat().st_size <= 4_500
    assert said(tmp_path)[-1] == "request 49"


def test_a_session_that_is_forgotten_meanwhile_ends_nothing(tmp_path: Path) -> None:
    """Another window forgets the oldest between the listing of a folder and the look at a file's time."""
    open_session(tmp_path, name="x").add("one", "1", "t1", str(tmp_path))
    (tmp_path / "sessions" / "old.jsonl").symlink_to(tmp_path / "gone")
    assert open_session(tmp_path, latest=True, project=tmp_path).name == "x"
