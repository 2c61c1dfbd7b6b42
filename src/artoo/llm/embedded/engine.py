"""Load a GGUF file with llama.cpp, with its batch and cache; users set the rest in `runtime/config/model.py`.

No other module uses llama.cpp. It also starts the HTTP server of the engine.

The bindings (`xllamacpp`) have no type information. Therefore no untyped value leaves this module. All functions
block, so `transport` runs them in threads.
"""

from __future__ import annotations

import atexit
import importlib
import os
import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, cast

from artoo.contracts.errors import ModelUnreachable
from artoo.llm.schema import Schema, without_keys

GGUF_MAGIC = b"GGUF"
SMALLEST_GGUF_BYTES = 24
READ_AHEAD_BYTES = 4 * 1024 * 1024

_LENGTHS = frozenset({"maxLength", "minLength", "pattern", "format"})
# Options of llguidance, which enforces grammars. JSON is written in one line, and keywords of a schema that it does
# not support are ignored.
_IN_ONE_LINE = {"whitespace_flexible": False, "item_separator": ", ", "key_separator": ": ", "lenient": True}

# The number of roles that ask a model in one task, each with its own system prompt.
_ROLES = 4


@dataclass(frozen=True, slots=True)
class EngineSettings:
    """The settings with which a model is loaded.

    context_tokens: size of the context that all slots share, in tokens. slots: parallel generations.
    prompt_cache_mib: memory for prefixes that are in no slot, so that roles with different prompts can alternate
    without computing them again (28 KiB a token for the default model).
    batch_tokens: prompt tokens between two checks for cancelled calls.
    max_answer_tokens: limit for requests without one.
    threads: None means one per physical core that this process may use.
    prefixes: a folder for the states after static parts of prompts; if None, no states are stored.
    """

    context_tokens: int
    slots: int
    prompt_cache_mib: int = 512
    batch_tokens: int = 256
    max_answer_tokens: int = 2_048
    threads: int | None = None
    prefixes: Path | None = None


class Engine(Protocol):
    """A loaded model that serves HTTP at a UNIX socket."""

    @property
    def socket(self) -> str:
        """Return the path of the socket."""
        ...

    def constrained(self, body: Mapping[str, object]) -> dict[str, object]:
        """Return the request in the form that this engine accepts."""
        ...

    def close(self) -> None:
        """Close the engine and free the model. Idempotent."""
        ...


def check_gguf(path: Path) -> None:
    """Raise ModelUnreachable for a file that cannot be a GGUF model. This is called before llama.cpp loads the
    file."""
    try:
        with path.open("rb") as file:
            head = file.read(SMALLEST_GGUF_BYTES)
    except OSError as error:
        raise ModelUnreachable(
            f"the model file {path} cannot be read ({error.strerror}); "
            "`artoo model pull` fetches the default model, `artoo model use PATH` picks another"
        ) from error
    if len(head) < SMALLEST_GGUF_BYTES or not head.startswith(GGUF_MAGIC):
        raise ModelUnreachable(
            f"{path} is not a GGUF model (it begins with {head[:4]!r}, not {GGUF_MAGIC!r}); "
            "fetch it again with `artoo model pull`, or pick another with `artoo model use PATH`"
        )


def physical_cores(topology: Path = Path("/sys/devices/system/cpu")) -> int:
    """Count the physical cores that this process may use. If the system does not report cores, count the CPUs that
    it may use."""
    allowed = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set(range(os.cpu_count() or 1))
    cores: set[tuple[str, str]] = set()
    for cpu in allowed:
        place = topology / f"cpu{cpu}" / "topology"
        try:
            cores.add(((place / "physical_package_id").read_text(), (place / "core_id").read_text()))
        except OSError:
            return max(1, len(allowed))
    return max(1, len(cores))


class LlamaEngine:
    """A model inside this process.

    The server of llama.cpp listens on a UNIX socket in a directory that only this user can enter. The directory is
    deleted when the model is loaded. After that, only this process can reach the socket, through a file descriptor.
    If the system has no such descriptors (macOS), the directory is kept until the end.
    """

    def __init__(self, path: Path, settings: EngineSettings) -> None:
        """Load the model, which takes seconds. Raises ModelUnreachable."""
        check_gguf(path)
        try:
            bindings: Any = importlib.import_module("xllamacpp")
        except ImportError as error:
            raise ModelUnreachable(
                f"the embedded model needs the package xllamacpp, which cannot be loaded here ({error}); "
                "install it, or set BRAIN_BASE_URL and TOOL_BASE_URL to use a model server instead"
            ) from error
        self._grammar_of: Callable[[Schema], str] = bindings.json_schema_to_grammar
        if settings.prefixes is not None:
            with suppress(OSError):  # stored prefixes only save time, so an error has no consequences
                settings.prefixes.mkdir(parents=True, exist_ok=True, mode=0o700)
        try:
            _read_ahead(path)
            self._private = tempfile.TemporaryDirectory(prefix="artoo-")
        except OSError as error:
            raise ModelUnreachable(
                f"the model {path} cannot be loaded ({error}); check the disks that hold it and "
                f"{tempfile.gettempdir()}"
            ) from error
        listening = Path(self._private.name) / "model.sock"
        try:
            self._server: object = bindings.Server(_parameters(bindings, path, settings, listening))
        except (RuntimeError, ValueError) as error:
            self._private.cleanup()
            raise ModelUnreachable(
                f"llama.cpp cannot load {path}: the file is damaged, of a kind that this llama.cpp does not "
                f"know, or larger than the memory ({error}); check it with `artoo model list`, fetch it again "
                "with `artoo model pull`, or pick another with `artoo model use PATH`"
            ) from error
        self._listener = _kept(listening)
        if self._listener >= 0:
            self._private.cleanup()  # the commands of a task run as the same user and must not find the socket
        self.socket = f"/proc/self/fd/{self._listener}" if self._listener >= 0 else str(listening)
        atexit.register(self.close)  # must run before the static objects of llama.cpp are destroyed

    def constrained(self, body: Mapping[str, object]) -> dict[str, object]:
        """Return the request, in which artoo's own grammar replaces the schema.

        With the grammar that the server makes itself, a small model can indent its JSON. This costs a third more
        tokens and may never end.
        """
        form = cast("Mapping[str, Mapping[str, Schema]]", body.get("response_format") or {})
        if "json_schema" not in form:
            return dict(body)
        # The maximum lengths of strings are not enforced here but validated later. If a string were ended at its
        # limit, the model would write the remaining text into the next field.
        schema = without_keys(form["json_schema"]["schema"], _LENGTHS)
        rest = {name: value for name, value in body.items() if name != "response_format"}
        return {**rest, "grammar": self._grammar_of({**schema, "x-guidance": _IN_ONE_LINE})}

    def close(self) -> None:
        """Close the engine and free the model. While a batch is computed, it holds Python's global lock, even if
        this is called in a thread.
        """
        atexit.unregister(self.close)
        listener, self._listener, self._server = self._listener, -1, None
        if listener >= 0:
            os.close(listener)
        self._private.cleanup()


def _kept(socket: Path) -> int:
    """Return a descriptor through which a socket can be reached after its name was deleted. Return -1 if the system
    has none."""
    if hasattr(os, "O_PATH") and Path("/proc/self/fd").is_dir():
        with suppress(OSError):
            return os.open(socket, os.O_PATH | os.O_CLOEXEC)
    return -1


def _read_ahead(path: Path) -> None:
    """Read the file into the page cache, because the bindings hold Python's global lock while they read from
    disk."""
    buffer = bytearray(READ_AHEAD_BYTES)
    with path.open("rb", buffering=0) as file:
        while file.readinto(buffer):
            pass


def slots_of(settings: EngineSettings) -> int:
    """Return the number of slots. With stored prefixes each role has a slot, but the number of answers at the same
    time stays the same."""
    return settings.slots if settings.prefixes is None else max(settings.slots, _ROLES)


def _parameters(bindings: Any, path: Path, settings: EngineSettings, socket: Path) -> Any:
    parameters = bindings.CommonParams()
    for part in (parameters.cpuparams, parameters.cpuparams_batch):
        part.n_threads = settings.threads or physical_cores()
    parameters.model.path = str(path)
    values: dict[str, object] = {
        "hostnames": [str(socket)],
        "n_ctx": settings.context_tokens,
        "n_parallel": slots_of(settings),
        "kv_unified": True,
        "n_batch": settings.batch_tokens,
        "n_ubatch": settings.batch_tokens,
        "n_predict": settings.max_answer_tokens,
        "cache_ram_mib": settings.prompt_cache_mib,
        "verbosity": -1,
        "fit_params": False,
        "warmup": False,
        "use_jinja": True,
        "ui": False,
        "offline": True,
        "endpoint_slots": settings.prefixes is not None,
    }
    if settings.prefixes is not None:
        values["slot_save_path"] = f"{settings.prefixes}{os.sep}"
    for name, value in values.items():
        setattr(parameters, name, value)
    return parameters
