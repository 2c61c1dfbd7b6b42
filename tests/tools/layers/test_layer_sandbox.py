"""Commands and files in a layer: everything may happen to the copies, artoo's own files stay out of reach."""

from __future__ import annotations

from pathlib import Path

import pytest

from artoo.contracts.changes import PathClass
from artoo.tools.layers.layer import PROJECT, WORKSPACE, Layer, Layers
from artoo.world.classify import Places


@pytest.fixture
def layer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Layer:
    """A layer of a project in a home that holds artoo's own, as in real life."""
    user = tmp_path.resolve() / "user"
    for directory in (user / "project", user / "out", user / ".artoo" / "memory"):
        directory.mkdir(parents=True)
    monkeypatch.setenv("HOME", str(user))
    (user / ".artoo" / "config.yaml").write_text("secret: 1\n")
    (user / ".artoo" / "memory" / "data").write_text("secret\n")
    (user / "project" / "a.txt").write_text("one\n")
    Layers(user / ".artoo").begin("other", 1, user / "project", user / "out")
    return Layers(user / ".artoo").begin("task", 1, user / "project", user / "out")


def test_places_of_a_layer(layer: Layer) -> None:
    """Copies are project and workspace, whatever their names; the rest of artoo's home stays artoo's."""
    home = layer.place.parents[2]
    places = Places.of(layer.roots, home)
    assert places.classify(bytes(layer.copy_of(PROJECT) / ".git/hooks/x")) is PathClass.PROJECT
    assert places.classify(bytes(layer.copy_of(WORKSPACE) / "x")) is PathClass.WORKSPACE
    assert places.classify(bytes(layer.manifest)) is PathClass.ARTOO
    assert places.classify(bytes(home / "config.yaml")) is PathClass.ARTOO
    assert places.classify(bytes(layer.original_of(PROJECT) / "a.txt")) is PathClass.HOME
