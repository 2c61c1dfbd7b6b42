"""Copies of agents' files in a shared store, for machines that have not their folders (`artoo worker`)."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from artoo.agents.board.claim_holders import machine_of
from artoo.agents.storage.database import Stored, reads, writes
from artoo.agents.storage.transaction import Reading, Writing

LONGEST = 200_000
"""Characters of a file that is kept."""


class AgentFiles(Stored):
    """Rows of a shared store. Every method raises ActivityStoreError."""

    async def keep(self, agent: str, files: Mapping[str, str]) -> None:
        """Make the copies what the folder on this machine holds; what is the same already is not written."""
        hashes = {file: hashlib.sha256(text.encode()).hexdigest() for file, text in files.items()}
        if changed := hashes.items() - (await self._hashes(agent)).items():
            await self._keep(agent, {file: (sha256, files[file]) for file, sha256 in changed})

    @reads
    def _hashes(self, reading: Reading, agent: str) -> dict[str, str]:
        rows = reading.all("SELECT file, sha256 FROM agent_files WHERE agent = ?", (agent,))
        return {row["file"]: row["sha256"] for row in rows}

    @writes
    def _keep(self, writing: Writing, agent: str, files: Mapping[str, tuple[str, str]]) -> None:
        for file, (sha256, text) in files.items():
            writing.insert(
                "agent_files",
                over=("agent", "file"),
                agent=agent,
                file=file,
                machine=machine_of(writing.holder),
                sha256=sha256,
                content=text,
                kept_us=writing.steady_us,
            )

    @reads
    def of(self, reading: Reading, agent: str) -> dict[str, str]:
        """Return the copies, by the names of the files."""
        rows = reading.all("SELECT file, content FROM agent_files WHERE agent = ?", (agent,))
        return {row["file"]: row["content"] for row in rows}
