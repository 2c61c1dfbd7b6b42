"""The embedded transport with the real model: `$ARTOO_TEST_MODEL` (a GGUF file), or the fetched default model."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from artoo.llm.completion import Completion
from artoo.llm.embedded.engine import Engine, EngineSettings, LlamaEngine
from artoo.llm.embedded.store import QWEN_CODER, ModelStore
from artoo.llm.embedded.transport import EmbeddedTransport
from artoo.llm.transport import TransportReply
from artoo.llm.wires import chat


def model_path() -> Path | None:
    given = os.environ.get("ARTOO_TEST_MODEL")
    path = Path(given) if given else ModelStore(Path.home() / ".artoo").path_of(QWEN_CODER)
    return path if path.is_file() else None


MODEL = model_path()
pytestmark = [
    pytest.mark.embedded,
    pytest.mark.skipif(
        MODEL is None, reason="no model on disk: set ARTOO_TEST_MODEL to a GGUF file, or run `artoo model pull`"
    ),
    pytest.mark.asyncio(loop_scope="module"),
]
loads: list[Path] = []


def counted_load(path: Path, settings: EngineSettings) -> Engine:
    loads.append(path)
    return LlamaEngine(path, settings)


async def ready() -> Path:
    assert MODEL is not None
    return MODEL


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def transport() -> AsyncIterator[EmbeddedTransport]:
    transport = EmbeddedTransport("m", EngineSettings(4_096, 2), ready, load=counted_load)
    yield transport
    await transport.close()


def ask(text: str, *, system: str = "Answer in one word.", **more: object) -> dict[str, object]:
    messages = [{"role": "system", "content": system}, {"role": "user", "content": text}]
    return {"messages": messages, "max_tokens": 8, "temperature": 0, **more}


def completion_of(reply: TransportReply) -> Completion:
    found = chat.WIRE.read(reply).completion
    assert found is not None, reply.body
    return found


def text_of(reply: TransportReply) -> str:
    return completion_of(reply).content


async def test_concurrent_callers_share_one_loaded_model(transport: EmbeddedTransport) -> None:
    """Three callers at once are all answered by a model that was loaded once."""
    replies = await asyncio.gather(*(transport.post(ask(f"Say {n}.", max_tokens=2), timeout=120) for n in range(3)))
    assert all(text_of(reply) for reply in replies)
    assert len(loads) == 1


async def test_a_grammar_is_obeyed(transport: EmbeddedTransport) -> None:
    """A GBNF grammar leaves the model no other words."""
    reply = await transport.post(ask("Is the sky blue?", grammar='root ::= "oui" | "non"'), timeout=120)
    assert text_of(reply) in {"oui", "non"}


async def test_a_json_schema_is_obeyed(transport: EmbeddedTransport) -> None:
    """`response_format` with a JSON schema gives an object of that schema, in one line whatever was asked for."""
    schema = {
        "type": "object",
        "properties": {"age": {"type": "integer"}},
        "required": ["age"],
        "additionalProperties": False,
    }
    form = {"type": "json_schema", "json_schema": {"name": "Age", "schema": schema}}
    asked = ask("Bob is 42. Write JSON indented by four spaces.", response_format=form, max_tokens=24)
    assert text_of(await transport.post(asked, timeout=120)) == '{"age": 42}'


@pytest.mark.torture
async def test_three_roles_that_take_turns_keep_their_prefixes(transport: EmbeddedTransport) -> None:
    """More prompts than slots: in the second turn each finds nearly all of its prefix computed."""
    roles = [f"Role {n}. " + f"Rule of role {n}: be brief. " * 6 for n in range(3)]
    for role in roles:
        await transport.post(ask("One?", system=role, max_tokens=1), timeout=120)
    for role in roles:
        reply = await transport.post(ask("Two?", system=role, max_tokens=1), timeout=120)
        usage = completion_of(reply).usage
        assert usage is not None and usage.cached_tokens > 0.7 * usage.prompt_tokens


async def test_a_prompt_that_is_too_long_is_refused_with_a_status(transport: EmbeddedTransport) -> None:
    """What does not fit the context comes back as a 400, not as a cut or a crash."""
    reply = await transport.post(ask("word " * 6000), timeout=120)
    assert reply.status == 400


async def test_the_model_answers_again_after_a_cancelled_call(transport: EmbeddedTransport) -> None:
    """A call cancelled in the middle leaves the model usable."""
    call = asyncio.ensure_future(transport.post(ask("Count to 500.", max_tokens=900), timeout=120))
    await asyncio.sleep(0.3)
    call.cancel()
    await asyncio.gather(call, return_exceptions=True)
    assert text_of(await transport.post(ask("Say yes.", max_tokens=2), timeout=120))


@pytest.mark.torture
async def test_an_interrupted_process_ends_quietly() -> None:
    """Ctrl-C in the middle of a generation, then a close: the process ends by itself and llama.cpp is silent."""
    program = textwrap.dedent(
        """
        import asyncio, signal, sys
        from pathlib import Path
        from artoo.llm.embedded.engine import EngineSettings
        from artoo.llm.embedded.transport import EmbeddedTransport

        signal.signal(signal.SIGINT, signal.default_int_handler)  # tests run in the background have it ignored

        async def main():
            async def ready():
                return Path(sys.argv[1])

            transport = EmbeddedTransport("m", EngineSettings(16_384, 2), ready)
            body = {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 1}
            try:
                await transport.post(body, timeout=120)
                print("ready", flush=True)
                await transport.post({**body, "max_tokens": 900, "messages": [
                    {"role": "user", "content": "Count from 1 to 500."}]}, timeout=120)
            finally:
                await transport.close()

        try:
            asyncio.run(main())
        except KeyboardInterrupt:
            print("interrupted", flush=True)
        """
    )

    def run() -> tuple[str, str, int]:
        command = [sys.executable, "-c", program, str(MODEL)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=240)  # a hang, not slowness: a busy machine needs its time
            return out, err, process.returncode

    assert await asyncio.to_thread(run) == ("interrupted\n", "", 0)
