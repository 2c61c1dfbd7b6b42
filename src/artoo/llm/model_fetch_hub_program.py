"""The program that `artoo.llm.model_fetch_hub` starts: downloads one file from the Hugging Face hub.

A process of its own, because the hub's library blocks and cannot be cancelled. One quick look whether the hub
answers comes first: the library itself would try for most of a minute where the hub is blocked.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Protocol, cast

import huggingface_hub

CONNECT_SECONDS = 5


class _Session(Protocol):
    def head(self, url: str, *, timeout: float) -> object: ...


class _Hub(Protocol):
    """What is used of huggingface_hub, whose own annotations are incomplete."""

    def get_session(self) -> _Session: ...
    def hf_hub_url(self, repo_id: str, filename: str) -> str: ...
    def hf_hub_download(self, repo_id: str, filename: str, *, local_dir: str) -> str: ...


def main(repository: str, file_name: str, directory: str) -> None:
    hub = cast("_Hub", huggingface_hub)
    hub.get_session().head(hub.hf_hub_url(repository, file_name), timeout=CONNECT_SECONDS)
    Path(directory).mkdir(parents=True, exist_ok=True)
    hub.hf_hub_download(repository, file_name, local_dir=directory)


if __name__ == "__main__":
    main(*sys.argv[1:])
