"""What of a home moves into a store: the one place that knows all parts."""

from __future__ import annotations

from artoo.agents.storage.database import database_path
from artoo.agents.storage.migrate import Books
from artoo.memory.moving import Memory
from artoo.runtime.app.machine_name import machine_name
from artoo.runtime.config.model import Config
from artoo.store.parts import Part


def parts(config: Config) -> tuple[Part, ...]:
    """The parts of this home, in the order in which they move. Blocks. Raises ConfigurationError."""
    home = config.home.resolve()
    path = database_path(config.runtime.memory.episodic.activity_db, home)
    return (Books(path, machine_name(home)), Memory(config.memory_path))
