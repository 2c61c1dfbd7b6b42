"""Reads the configuration: the file with the place of every key, then the environment over it.

Nothing is guessed and nothing is skipped: every problem is named, all at once, with where it stands and what was
probably meant.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from artoo.contracts.errors import ConfigurationError
from artoo.runtime.config import Config
from artoo.runtime.config_environment import overrides
from artoo.runtime.config_places import Places, Problem, Tree
from artoo.runtime.config_problems import problems_of
from artoo.runtime.home import CONFIG_NAME, default_home

LARGEST_FILE = 256 * 1024
"""Bytes. A configuration is a page or two; anything larger is some other file."""


def load_config(environ: Mapping[str, str] | None = None) -> Config:
    """Reads `config.yaml` of the home (absent: all defaults), then the environment over it.

    Raises ConfigurationError that names every problem at once, each with file, line and column or its variable.
    """
    given = os.environ if environ is None else environ
    home = default_home(given)
    return read_config(home / CONFIG_NAME, given).at_home(home)


def read_config(path: Path, environ: Mapping[str, str]) -> Config:
    """Reads one file (it may be absent) and `environ`. Raises ConfigurationError."""
    text = _text_of(path)
    tree, places = _parsed(text, path) if text.strip() else ({}, Places(path))
    problems = list(places.problems)
    problems += overrides(tree, places, environ)
    problems += problems_of(tree, places)
    if problems:
        raise ConfigurationError(_report(problems, path))
    return Config.model_validate(tree)


def _text_of(path: Path) -> str:
    """The file's text, empty when there is none."""
    try:
        with path.open("rb") as file:
            raw = file.read(LARGEST_FILE + 1)
    except FileNotFoundError:
        return ""
    except OSError as error:
        raise ConfigurationError(f"{path} cannot be read: {error.strerror}") from error
    if len(raw) > LARGEST_FILE:
        raise ConfigurationError(f"{path} is larger than {LARGEST_FILE} bytes; is it a configuration?")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise ConfigurationError(f"{path}:{line}: not UTF-8 text; save the file as UTF-8") from error


def _parsed(text: str, path: Path) -> tuple[Tree, Places]:
    """The file's values, and where each stands. PyYAML costs 35 ms, so it is imported when there is a file."""
    from artoo.runtime.config_yaml import parse

    return parse(text, path)


def _report(problems: list[Problem], path: Path) -> str:
    """All problems, one a line, in the order of the file."""
    ordered = sorted(problems, key=lambda problem: problem.order)
    if len(ordered) == 1:
        return str(ordered[0])
    return "\n".join([f"the configuration has {len(ordered)} problems:", *(f"  {problem}" for problem in ordered)])
