"""New objects, and what is written beside packs: git believes it, so it is looked at before it is."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from git_scenes import after, history, run
from layers import view_of
from sandbox_world import World

from artoo.world.difference import difference_of

_OBJECT = "O=$(git hash-object draft); mkdir -p .git/objects/${O:0:2}; "


@pytest.fixture
def packed(world: World) -> World:
    """A repository with one pack that has no reverse index, and a draft that git does not have."""
    run(world.project, "git init -q -b main .; for n in 1 2 3 4 5 6; do seq $n 99 > f$n; done; git add .")
    run(world.project, "git commit -qm one; git -c pack.writeReverseIndex=false repack -q -a -d; echo mine > draft")
    return world


@pytest.mark.parametrize("made", [": > $F", "echo x > $F"])
def test_an_object_that_is_none_is_history(packed: World, made: str) -> None:
    """The person's next commit would take it for what they wrote."""
    found = after(packed, _OBJECT + "F=.git/objects/${O:0:2}/${O:2}; " + made + "; chmod u+r $F")
    assert history(found) == {"an object is not what its name says"}


def test_the_object_itself_is_silent(packed: World) -> None:
    """git add makes it."""
    assert history(after(packed, "git hash-object -w draft")) == set()


@pytest.mark.parametrize("wrong", [False, True])
@pytest.mark.parametrize("algorithm", ["sha1", "sha256"])
def test_a_new_reverse_index_says_what_the_pack_says(world: World, algorithm: str, wrong: bool) -> None:
    """Where an object ends git takes from it, and so what it copies."""
    run(
        world.project,
        f"git init -q -b main --object-format={algorithm} .; for n in 1 2 3 4; do seq $n 99 > f$n; done",
    )
    run(world.project, "git add .; git commit -qm one; git -c pack.writeReverseIndex=false repack -q -a -d")

    def change(home: Path) -> None:
        pack = next((home / "project/.git/objects/pack").glob("*.pack"))
        run(home / "project", f"cp {pack} ../x.pack; git index-pack --rev-index ../x.pack; rm ../x.pack ../x.idx")
        content = (home / "x.rev").read_bytes()
        (home / "x.rev").unlink()
        width = hashlib.new(algorithm).digest_size
        if wrong:
            order = content[12 : -2 * width]
            body = content[:12] + order[4:] + order[:4] + content[-2 * width : -width]
            content = body + hashlib.new(algorithm, body).digest()
        pack.with_suffix(".rev").write_bytes(content)

    found = difference_of(view_of(world, change), world.artoo_home)
    assert history(found) == ({"an index of a pack is not what the pack says"} if wrong else set())


_LOOSE = "echo lost | git hash-object -w --stdin; "


def test_unreachable_objects_packed_with_their_times_are_silent(packed: World) -> None:
    """A collection keeps them, and lets each grow as old as it would have."""
    run(packed.project, _LOOSE)
    found = after(packed, "git repack -q --cruft -d")
    assert [one for one in found.changes if one.path.endswith(".mtimes")]
    assert history(found) == set()


def test_an_unreachable_object_told_to_be_older_is_history(packed: World) -> None:
    """The next collection would throw it away."""
    run(packed.project, _LOOSE)
    found = after(packed, "touch -d 2001-01-01 .git/objects/??/*; git repack -q --cruft -d")
    assert history(found) == {"what git would believe about its packs cannot be checked"}
