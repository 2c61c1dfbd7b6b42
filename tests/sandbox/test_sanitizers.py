"""Programs that reserve far more memory than they use run in every backend."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from copy_world import Home, backend_named, opened

_BROKEN = "#include <stdlib.h>\nint main(int n, char **w) { char *p = malloc(4); return p[n + 3]; }\n"


@pytest.mark.skipif(shutil.which("gcc") is None, reason="there is no gcc")
@pytest.mark.parametrize("name", ["bubblewrap", "landlock"])
@pytest.mark.parametrize("sanitizer", ["address", "leak"])
async def test_a_sanitizer_runs(tmp_path: Path, name: str, sanitizer: str) -> None:
    """Its shadow memory is terabytes of address space. Leaks are not looked for: that would trace the program."""
    home = Home.made(tmp_path)
    (home.project / "over.c").write_text(_BROKEN)
    (home.project / "right.c").write_text("int main(void) { return 0; }\n")
    script = (
        f"for one in right over; do gcc -g -fsanitize={sanitizer} $one.c -o $one && ./$one; echo ended $?; done"
    )
    async with opened(backend_named(name), home) as commands:
        printed = await commands.out(script)
    if "cannot find" in printed:
        pytest.skip(f"there is no library for -fsanitize={sanitizer}")
    assert (
        printed.startswith("ended 0") and "failed to" not in printed and "unexpected memory mapping" not in printed
    )
    assert ("heap-buffer-overflow" in printed) == (sanitizer == "address")
