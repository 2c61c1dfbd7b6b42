"""Images that are pasted into the conversation by their paths."""

from __future__ import annotations

from pathlib import Path

import pytest

from artoo.cli.conversation.pasted_images import images_in

PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 20


@pytest.fixture
def shot(tmp_path: Path) -> Path:
    path = tmp_path / "my shot.png"
    path.write_bytes(PNG)
    return path


@pytest.mark.parametrize(
    "written",
    [
        "{escaped} what is this?",
        "what is this? {escaped}",
        "what's on '{plain}'?",
        'what is on "{plain}"?',
        "look at {escaped}, please",
        "look at {escaped}.",
        "{url} what is this",
    ],
)
def test_a_pasted_path_is_found_as_terminals_write_it(shot: Path, written: str) -> None:
    """Escaped, in quotes, as a file URL, before or behind the words, with a sentence's sign behind it."""
    line = written.format(plain=shot, escaped=str(shot).replace(" ", "\\ "), url=shot.as_uri())
    assert images_in(line) == (shot,)


def test_only_whole_paths_of_images_are_taken(shot: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A bare name is a file's name; a text stays a text, whatever it is called; what is not there is nothing."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "plain.png").write_bytes(PNG)
    (tmp_path / "text.png").write_text("hello")
    assert images_in("rename plain.png to other.png") == ()
    assert images_in(f"read {tmp_path}/text.png and {tmp_path}/gone.png and /etc and ~nobody-here/a.png") == ()
    assert images_in(f"{tmp_path}/plain.png {tmp_path}/plain.png") == (tmp_path / "plain.png",)


def test_a_path_in_the_home_may_begin_with_a_tilde(
    shot: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As people type it."""
    monkeypatch.setenv("HOME", str(tmp_path))
    assert images_in("look at '~/my shot.png'") == (shot,)
