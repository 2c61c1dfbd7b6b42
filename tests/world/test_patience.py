"""A view that somebody only looks at is waited for; one that somebody keeps is not."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from artoo.world import patience
from artoo.world.patience import patiently
from artoo.world.view_place import ViewInUse, Views


def test_whoever_must_have_it_waits_for_one_who_looks(tmp_path: Path) -> None:
    """A task's end gets its view although a page held it at that moment."""
    place = Views(tmp_path).place("t")
    looking, held = threading.Event(), threading.Event()

    def look() -> None:
        with place.locked():
            held.set()
            looking.wait(30)

    page = threading.Thread(target=look)
    page.start()
    held.wait(30)
    with pytest.raises(ViewInUse), place.locked():
        pass
    threading.Timer(0.2, looking.set).start()
    with patiently(place.locked):
        assert looking.is_set()
    page.join()


def test_one_who_keeps_it_is_not_waited_for_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Then it says who must end first."""
    monkeypatch.setattr(patience, "PATIENCE_SECONDS", 0.1)
    place = Views(tmp_path).place("t")
    with place.locked(), pytest.raises(ViewInUse, match="at work in another process"), patiently(place.locked):
        pass
