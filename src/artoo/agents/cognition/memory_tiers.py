"""An agent's memory in three tiers, as those who work for it see it (`004`; SPEC section 11).

| tier | where | becomes |
|---|---|---|
| procedural | identity files, immutable | T |
| semantic | knowledge.md and the buffer of observations | K, and C by the Dreamer |
| episodic | sessions in the activity database, kept 90 days | M, which the loops write |
"""

from __future__ import annotations

import asyncio
from pathlib import Path

from artoo.agents.cognition.knowledge_file import relevant
from artoo.agents.cognition.observations import observation_of
from artoo.agents.cognition.store import CognitionStore, Session
from artoo.contracts.solution import FinalResult
from artoo.disk.whole import read_text

SMALL_MODEL_CHARACTERS = 1_500
"""Of curated knowledge in a small model's prompt: what is closest to the task."""


class CognitiveMemory:
    """One agent's. `characters`: of the knowledge file that any prompt holds, at most."""

    def __init__(self, store: CognitionStore, knowledge: Path, *, characters: int = 15_000) -> None:
        self._store = store
        self._knowledge = knowledge
        self._characters = characters

    async def remember(self, session: Session, request: str, result: FinalResult) -> bool:
        """Keeps a finished session and what it teaches, once, however often called. Raises ActivityStoreError."""
        return await self._store.keep(session, observation_of(request, result))

    async def knowledge_for(self, task: str, *, small_model: bool) -> str:
        """Curated knowledge for segment CURATED_KNOWLEDGE: whole, or for a small model what the task needs.

        Never the buffer. Raises OSError, UnicodeDecodeError.
        """
        text = await asyncio.to_thread(read_text, self._knowledge)
        budget = min(self._characters, SMALL_MODEL_CHARACTERS) if small_model else self._characters
        return relevant(text, task, budget)

    async def sessions(self, limit: int = 20) -> tuple[Session, ...]:
        """The newest sessions, newest first. Raises ActivityStoreError."""
        return tuple(session for _, session in await self._store.sessions(limit))
