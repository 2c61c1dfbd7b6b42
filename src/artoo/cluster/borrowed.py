"""Copy agents' identity and other files through the store for `artoo serve worker`, with a length limit.

folder of the agent ─ artoo serve, artoo agent accept ─► store ─ verified by the accepted hash ─► borrowed/NAME
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from artoo.agents.board.claim_holders import machine_of
from artoo.agents.identity.folders import HEARTBEAT, IDENTITY, KNOWLEDGE, AgentFolder, FoundAgents
from artoo.agents.identity.registry import AgentRecord
from artoo.agents.storage.database import Stored, reads, writes
from artoo.agents.storage.transaction import Reading, Writing
from artoo.contracts.errors import ConfigurationError
from artoo.disk.whole import write_durably

logger = logging.getLogger(__name__)

BORROWED = "borrowed"
"""The folder below the home for copies of agents' folders. It may be deleted at any time."""
LONGEST = 200_000
"""Maximum number of characters of a file that is copied to the store."""


class AgentFiles(Stored):
    """The copies of agents' files in a shared store. Every method raises ActivityStoreError."""

    async def keep(self, agent: str, files: Mapping[str, str]) -> None:
        """Update the copies in the store to match the files in the folder on this machine. Files that are unchanged
        are not written."""
        hashes = {file: hashlib.sha256(text.encode()).hexdigest() for file, text in files.items()}
        if changed := hashes.items() - (await self._hashes(agent)).items():
            await self._keep(agent, {file: (sha256, files[file]) for file, sha256 in changed})

    @reads
    def _hashes(self, reading: Reading, agent: str) -> dict[str, str]:
        rows = reading.all("SELECT file, sha256 FROM agent_files WHERE agent = ?", (agent,))
        return {row["file"]: row["sha256"] for row in rows}

    @writes
    def _keep(self, writing: Writing, agent: str, files: Mapping[str, tuple[str, str]]) -> None:
        row: dict[str, Any] = {"agent": agent, "machine": machine_of(writing.holder), "kept_us": writing.steady_us}
        for file, (sha256, text) in files.items():
            writing.insert("agent_files", over=("agent", "file"), file=file, sha256=sha256, content=text, **row)

    @reads
    def of(self, reading: Reading, agent: str) -> dict[str, str]:
        """Return the stored files of an agent, which are the contents by file name."""
        rows = reading.all("SELECT file, content FROM agent_files WHERE agent = ?", (agent,))
        return {row["file"]: row["content"] for row in rows}

    async def lend(self, folder: AgentFolder, accepted: str | None) -> None:
        """Send copies of an agent's files to the store, if the agent's identity is the accepted one.

        Raises ActivityStoreError.
        """
        if folder.borrowed:
            return
        found: dict[str, str] = {}
        for name in (IDENTITY, KNOWLEDGE):
            try:
                found[name] = folder.identity.with_name(name).read_bytes().decode()
            except FileNotFoundError:
                continue
            except (OSError, UnicodeDecodeError) as error:
                logger.warning("%s of agent %s is not in the store: %s", name, folder.name, error)
        text = found.get(IDENTITY)
        # Only an accepted identity may get to other machines.
        if text is None or _sha256(text) != accepted:
            return
        await self.keep(folder.name, {name: text for name, text in found.items() if len(text) <= LONGEST})

    async def borrow(self, home: Path, records: Sequence[AgentRecord]) -> FoundAgents:
        """Write the stored copies of accepted agents' files to folders below the home. Return these folders.

        Raises ActivityStoreError. Raises ConfigurationError if the folders cannot be written.
        """
        agents: list[AgentFolder] = []
        problems: list[str] = []
        for record in records:
            if record.retired:
                continue
            copies = await self.of(record.name)
            text = copies.get(IDENTITY)
            if record.stopped:
                problems.append(f"agent {record.name} is stopped: {record.stopped}")
            elif text is None or _sha256(text) != record.identity_sha256:
                problems.append(
                    f"the accepted identity of agent {record.name} is not in the store yet: run artoo serve, or"
                    f" artoo agent accept {record.name}, where its folder is"
                )
            else:
                agents.append(_laid(home / BORROWED / record.name, record.name, copies))
        return FoundAgents(tuple(agents), tuple(problems))


def _laid(place: Path, name: str, copies: dict[str, str]) -> AgentFolder:
    try:
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        for file in (IDENTITY, KNOWLEDGE):
            content = copies.get(file, "").encode()
            path = place / file
            if not path.exists() or path.read_bytes() != content:
                write_durably(path, content)
    except OSError as error:
        raise ConfigurationError(f"{place} cannot be written: {error.strerror}; free space") from error
    return AgentFolder(name, place / IDENTITY, place / HEARTBEAT, borrowed=True)


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
