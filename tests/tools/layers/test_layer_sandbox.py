"""Commands and files in a layer: everything may happen to the copies, artoo's own files stay out of reach."""

from __future__ import annotations

from pathlib import Path

import pytest

from artoo.contracts.changes import PathClass
from artoo.contracts.execution import CallStatus
from artoo.ports.sandbox import Sandbox, TaskLedger
from artoo.tools.commands import Command
from artoo.tools.gate import Gate
from artoo.tools.gated import GatedCommands, GatedWriter
from artoo.tools.layers.layer import PROJECT, WORKSPACE, Layer, Layers
from artoo.tools.tool import Outcome
from artoo.world.choose import open_sandbox
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


@pytest.fixture
async def sandbox(layer: Layer) -> Sandbox:
    """The best sandbox of this machine; without one that stages changes there is nothing to show."""
    found = await open_sandbox(layer.place.parents[2])
    if found.tier not in ("bubblewrap", "namespaces"):
        pytest.skip(f"only {found.tier} works here")
    return found


async def run(sandbox: Sandbox, layer: Layer, script: str) -> Outcome:
    """Runs a command as a governed task does, with nobody to ask."""
    runner = GatedCommands(sandbox, layer.roots, "run-1", Gate(), TaskLedger())
    return await runner.run(Command(("bash", "-c", script), wall_seconds=30.0))


async def test_everything_may_happen_in_the_layer(sandbox: Sandbox, layer: Layer) -> None:
    """Overwriting, deleting and start-up files need nobody's consent there, and the project stays as it was."""
    outcome = await run(sandbox, layer, "echo two > a.txt; echo x > .envrc; mkdir d; rm -r d; cat a.txt; pwd")
    assert outcome.status is CallStatus.OK, outcome
    assert (layer.copy_of(PROJECT) / "a.txt").read_text() == "two\n"
    assert (layer.copy_of(PROJECT) / ".envrc").exists()
    assert (layer.original_of(PROJECT) / "a.txt").read_text() == "one\n"
    outcome = await run(sandbox, layer, f"rm a.txt; echo r > {layer.copy_of(WORKSPACE)}/r.md")
    assert outcome.status is CallStatus.OK
    assert not (layer.copy_of(PROJECT) / "a.txt").exists()
    assert (layer.copy_of(WORKSPACE) / "r.md").read_text() == "r\n"


async def test_the_real_project_is_outside(sandbox: Sandbox, layer: Layer) -> None:
    """A change outside the layer, in the real project too, goes through the gate: nobody to ask is no."""
    outcome = await run(sandbox, layer, f"echo x > {layer.original_of(PROJECT)}/new.txt")
    assert outcome.status is not CallStatus.OK
    assert outcome.withheld_by == "nobody"
    assert not (layer.original_of(PROJECT) / "new.txt").exists()


async def test_artoos_own_files_are_out_of_reach(sandbox: Sandbox, layer: Layer) -> None:
    """Neither artoo's records, nor other layers, nor this layer's own manifest can be read or listed."""
    home = layer.place.parents[2]
    for path in ("config.yaml", "memory/data", "layers/other/1/project/a.txt", "layers/task/1/manifest.jsonl"):
        outcome = await run(sandbox, layer, f"cat {home}/{path}")
        assert "secret" not in outcome.output and "one" not in outcome.output, path
    outcome = await run(sandbox, layer, f"find {home} -type f 2>/dev/null | xargs -r wc -c")
    assert "a.txt" in outcome.output and "data" not in outcome.output


async def test_files_are_written_into_the_layer(sandbox: Sandbox, layer: Layer) -> None:
    """`write_file` creates and replaces files of the copies without a question."""
    writer = GatedWriter(sandbox, layer.roots, "run-1", Gate(), TaskLedger())
    for content in (b"two\n", b"three\n"):
        outcome = await writer.write(Path("a.txt"), content)
        assert outcome.status is CallStatus.OK
    assert (layer.copy_of(PROJECT) / "a.txt").read_text() == "three\n"
    assert (layer.original_of(PROJECT) / "a.txt").read_text() == "one\n"


def test_places_of_a_layer(layer: Layer) -> None:
    """Copies are project and workspace, whatever their names; the rest of artoo's home stays artoo's."""
    home = layer.place.parents[2]
    places = Places.of(layer.roots, home)
    assert places.classify(bytes(layer.copy_of(PROJECT) / ".git/hooks/x")) is PathClass.PROJECT
    assert places.classify(bytes(layer.copy_of(WORKSPACE) / "x")) is PathClass.WORKSPACE
    assert places.classify(bytes(layer.manifest)) is PathClass.ARTOO
    assert places.classify(bytes(home / "config.yaml")) is PathClass.ARTOO
    assert places.classify(bytes(layer.original_of(PROJECT) / "a.txt")) is PathClass.HOME
