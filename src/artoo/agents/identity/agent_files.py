"""Copies of agents' files in a shared store, for machines that have not their folders (`artoo worker`)."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from artoo.agents.board.claim_holders import machine_of
from artoo.agents.storage.database import Database
from artoo.agents.storage.transaction import Writing

LONGEST = 200_000
"""Characters of a file that is kept."""


class AgentFiles:
    """Rows of a shared store. Every method raises ActivityStoreError."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def keep(self, agent: str, files: Mapping[str, str]) -> None:
        """Makes the copies what the folder on this machine holds; what is the same already is not written."""
        hashes = {file: hashlib.sha256(text.encode()).hexdigest() for file, text in files.items()}
        known = await self._database.read(
            lambda reading: {
                str(row["file"]): str(row["sha256"])
                for row in reading.all("SELECT file, sha256 FROM agent_files WHERE agent = ?", (agent,))
            }
        )
        changed = {file: sha256 for file, sha256 in hashes.items() if known.get(file) != sha256}
        if not changed:
            return

        def work(writing: Writing) -> None:
            for file, sha256 in changed.items():
                writing.run(
                    "INSERT INTO agent_files (agent, file, machine, sha256, content) VALUES (?, ?, ?, ?, ?)"
                    " ON CONFLICT (agent, file) DO UPDATE SET machine = excluded.machine, sha256 = excluded.sha256,"
                    " content = excluded.content, kept_us = now_us()",
                    (agent, file, machine_of(writing.holder), sha256, files[file]),
                )

        await self._database.write(work)

    async def of(self, agent: str) -> dict[str, str]:
        """The copies, by the names of the files."""
        rows = await self._database.read(
            lambda reading: reading.all("SELECT file, content FROM agent_files WHERE agent = ?", (agent,))
        )
        return {row["file"]: row["content"] for row in rows}
