"""Give an agent's prompts its three tiers of memory, and record its sessions and observations.

| tier | where | becomes |
|---|---|---|
| procedural | identity files, immutable | T |
| semantic | knowledge.md and the buffer of observations | K, and C by the Dreamer |
| episodic | sessions in the activity database, kept 90 days | M, which the loops write |
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

from artoo.agents.cognition.consolidate import DreamCycle, DreamSettings
from artoo.agents.cognition.consolidation_plan import Promotion, megram_of
from artoo.agents.cognition.knowledge_file import SMALL_MODEL_CHARACTERS, relevant
from artoo.agents.cognition.observations import observation_of
from artoo.agents.cognition.store import CognitionStore, Session
from artoo.agents.identity.folders import KNOWLEDGE, AgentFolder
from artoo.agents.storage.database import Database
from artoo.contracts.memory import MemoryWritten
from artoo.contracts.roles import Role
from artoo.contracts.solution import FinalResult
from artoo.disk.whole import read_text
from artoo.ports.bus import Port
from artoo.ports.clock import Clock
from artoo.ports.ids import Ids
from artoo.runtime.app.artoo import Artoo
from artoo.runtime.config.seed_config import AgentMemory
from artoo.runtime.memory.shared_memory import NO_TASK


@dataclass(slots=True)
class Minds:
    """The memories of all agents of a team. `small_model`: true if a prompt contains only the knowledge that is
    most similar to the request."""

    database: Database
    artoo: Artoo
    clock: Clock
    ids: Ids
    settings: AgentMemory
    small_model: bool
    _folders: dict[str, AgentFolder] = field(default_factory=dict[str, AgentFolder])
    _speaking: Port | None = None

    def enter(self, folder: AgentFolder) -> None:
        """Register an agent's folder."""
        self._folders[folder.name] = folder

    async def knowledge(self, agent: str, request: str) -> str:
        """Return the knowledge of an agent for the prompts of one request. Return "" if the file cannot be read."""
        try:
            text = await asyncio.to_thread(read_text, self._knowledge(agent))
        except (OSError, UnicodeDecodeError):
            return ""
        most = self.settings.semantic.max_curated_chars
        return relevant(text, request, min(most, SMALL_MODEL_CHARACTERS) if self.small_model else most)

    async def remember(self, agent: str, session: Session, request: str, result: FinalResult) -> None:
        """Store a session that has ended, and the observation from it, once. Raises ActivityStoreError."""
        await self._store(agent).keep(session, observation_of(request, result))

    async def note(self, agent: str, session: Session) -> None:
        """Store a session without an observation. Raises ActivityStoreError."""
        await self._store(agent).keep(session, None)

    def dream_cycle(self, agent: str) -> DreamCycle:
        """Return the agent's dream cycle."""
        semantic = self.settings.semantic
        return DreamCycle(
            agent,
            self._store(agent),
            self._knowledge(agent),
            self.clock,
            self.ids,
            promote=self._promote,
            settings=DreamSettings(
                interval=timedelta(hours=semantic.dream_cycle_interval_hours),
                most_observations=semantic.observation_buffer_limit,
                characters=semantic.max_curated_chars,
            ),
        )

    async def _promote(self, promotion: Promotion) -> None:
        memory = await self.artoo.memory()
        if memory is not None:
            megram = megram_of(promotion)
            memory.remember.write(megram)
            self._port.publish(MemoryWritten.of(megram))
            await memory.remember.flush()

    @property
    def _port(self) -> Port:
        """Return the port of the slow loop on the stream. It is only used to publish."""
        if self._speaking is None:
            self._speaking = self.artoo.bus.port(Role.DREAMER, NO_TASK)
            self.artoo.bus.close_task(NO_TASK)
        return self._speaking

    def _store(self, agent: str) -> CognitionStore:
        return CognitionStore(self.database, agent, self.settings.episodic.session_retention_days)

    def _knowledge(self, agent: str) -> Path:
        return self._folders[agent].identity.parent / KNOWLEDGE
