"""The question before the first download of the local model, on a terminal."""

from __future__ import annotations

import os
from pathlib import Path

from artoo.cli.conversation.yes_no import agreed, is_asked
from artoo.contracts.errors import ConfigurationError, ModelUnreachable
from artoo.runtime.config.endpoints import TIERS, endpoint
from artoo.runtime.config.model import Config
from artoo.words.catalogue import in_language

_HOW = "fetch it with artoo model pull, or name a server: artoo config set models.brain.base_url URL"


async def ask_to_download(config: Config) -> None:
    """Ask whether the local model may be downloaded. The question is asked only if a task would download it and a
    user can answer.

    Raises ModelUnreachable if the user refuses.
    """
    missing = None if not is_asked() else _missing(config)
    if missing is None:
        return
    name, size = missing
    words = in_language((os.environ.get("LC_ALL") or os.environ.get("LANG") or "en").partition(".")[0])
    question = words(
        "No model server is set up. Download the local model {name} ({size} MB) now? [y]es, [N]o: ",
        name=name,
        size=f"{size / 1e6:,.0f}",
    )
    if not await agreed(question):
        raise ModelUnreachable(f"the local model {name} is not here; {_HOW}")


def _missing(config: Config) -> tuple[str, int] | None:
    """Return the name and the size of the local model. Return None if it is on disk or serves no tier."""
    from artoo.llm.embedded.store import ModelStore

    try:
        if all(endpoint(config, tier, os.environ) is not None for tier in TIERS):
            return None
        store, named = ModelStore(config.home), config.embedded.model
        if named is not None and all(known.name != named for known in store.known):
            return None
        chosen = store.active() if named is None else store.find(named)
    except ConfigurationError:
        return None  # the task will report this error
    if isinstance(chosen, Path) or store.path_of(chosen).exists():
        return None
    return chosen.name, chosen.size
