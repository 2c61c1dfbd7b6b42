"""Programs that reserve far more memory than they use run; what is used is bounded."""

from __future__ import annotations

import shutil
import time

import pytest
from sandbox_world import Commands, World

from artoo.ports.sandbox import MIB, Limits

_BROKEN = "#include <stdlib.h>\nint main(int n, char **w) { char *p = malloc(4); return p[n + 3]; }\n"


@pytest.mark.parametrize("sanitizer", ["address", "thread"])
async def test_a_sanitizer_runs(any_overlay: Commands, world: World, sanitizer: str) -> None:
    """Its shadow memory is terabytes of reserved address space."""
    if shutil.which("gcc") is None:
        pytest.skip("no gcc")
    (world.project / "over.c").write_text(_BROKEN)
    build = await any_overlay.run(world.bash(f"gcc -fsanitize={sanitizer} over.c -o over && ./over; echo ended $?"))
    if "cannot find" in build.stderr.text:
        pytest.skip(f"no library for -fsanitize={sanitizer}")
    told = build.stdout.text + build.stderr.text
    assert "failed to" not in told and "unexpected memory mapping" not in told
    assert ("heap-buffer-overflow" in told) if sanitizer == "address" else ("ended 0" in told)


@pytest.mark.parametrize("sanitizer", ["address", "leak"])
async def test_a_right_program_passes(any_overlay: Commands, world: World, sanitizer: str) -> None:
    """Looking for leaks would trace the program, which is refused: it is left out, and nothing fails."""
    if shutil.which("gcc") is None:
        pytest.skip("no gcc")
    (world.project / "right.c").write_text("int main(void) { return 0; }\n")
    build = await any_overlay.run(
        world.bash(f"gcc -fsanitize={sanitizer} right.c -o right && ./right; echo ended $?")
    )
    if "cannot find" in build.stderr.text:
        pytest.skip(f"no library for -fsanitize={sanitizer}")
    assert "ended 0" in build.stdout.text, build.stderr.text


async def test_one_process_cannot_take_more_than_the_limit(any_overlay: Commands, world: World) -> None:
    """Also where nothing but the watch counts it."""
    script = "import time; held = bytearray(b'x') * (600 << 20); time.sleep(20)"
    began = time.monotonic()
    run = await any_overlay.run(world.bash(f'python3 -c "{script}"', limits=Limits(memory_bytes=200 * MIB)))
    assert run.status == "memory_limit" and time.monotonic() - began < 15
