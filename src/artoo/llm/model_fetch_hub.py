"""A model file from its home on the Hugging Face hub, by `huggingface_hub`, which resumes what was interrupted."""

from __future__ import annotations

import shutil
from collections.abc import Awaitable, Callable
from pathlib import Path

from artoo.contracts.errors import ModelUnreachable
from artoo.llm.model_fetch_pip import directory_size, running, watch
from artoo.llm.model_store import KnownModel
from artoo.sandbox.reading.programs import own_environment, own_python

HubDownload = Callable[[KnownModel, Path, Callable[[int], None]], Awaitable[Path]]
"""Downloads a model's hub file below a directory, reports the bytes that are there, and returns the file."""

QUIET_SETTINGS = {
    "HF_HUB_DISABLE_PROGRESS_BARS": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "HF_HUB_DOWNLOAD_TIMEOUT": "15",
    # Without it, an interrupted download would start again from nothing.
    "HF_HUB_DISABLE_XET": "1",
}


class HubSource:
    """The hub as a source of models; `download` is replaced in tests."""

    name = "Hugging Face hub"

    def __init__(self, download: HubDownload | None = None) -> None:
        self._download = download or download_from_hub

    def room_needed(self, model: KnownModel, directory: Path) -> int:
        """Bytes that must be free for the rest of the download."""
        return max(0, model.size - directory_size(directory / "hub"))

    async def fetch(self, model: KnownModel, directory: Path, report: Callable[[int], None]) -> Path:
        """The whole file, not yet verified, somewhere below `directory`. Raises ModelUnreachable."""
        return await self._download(model, directory / "hub", report)

    def discard(self, directory: Path) -> None:
        """Deletes what this source has on disk."""
        shutil.rmtree(directory / "hub", ignore_errors=True)


async def download_from_hub(model: KnownModel, directory: Path, report: Callable[[int], None]) -> Path:
    """Runs the hub's library in a process of its own; cancelling kills it and keeps what came.

    Raises ModelUnreachable.
    """
    command = own_python("-m", "artoo.llm.model_fetch_hub_program")
    arguments = [model.hub_repository, model.hub_file, str(directory)]
    async with running([*command, *arguments], {**QUIET_SETTINGS, **own_environment()}) as process:
        output = await watch(process, size=lambda: directory_size(directory), report=report, what=model.hub_file)
    if process.returncode != 0:
        lines = output.strip().splitlines()
        reason = lines[-1] if lines else f"exit code {process.returncode}"
        where = f"{model.hub_repository}/{model.hub_file}"
        raise ModelUnreachable(f"the Hugging Face hub did not give {where}: {reason}")
    return directory / model.hub_file
