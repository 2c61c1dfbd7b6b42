"""Load `config.yaml` and the environment, and report all mistakes with line and suggestion.

The loader does not guess or skip anything. All problems are reported at once, each with its position and a
suggestion.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from artoo.contracts.errors import ConfigurationError
from artoo.contracts.settling import ApplyMode
from artoo.runtime.app.home import config_file, default_home
from artoo.runtime.config.env_overrides import overrides, warn_once
from artoo.runtime.config.model import Config
from artoo.settings.places import Places, Tree
from artoo.settings.problems import leave_out_removed, problems_of, report
from artoo.settings.text_file import bytes_of, decoded

APPLY_ALL = "ARTOO_APPLY=all"
"""The setting that approves all changes in project and output folder, for containers and CI. It is not allowed in a
file, because the user might not see it there.
"""


def load_config(environ: Mapping[str, str] | None = None) -> Config:
    """Read `config.yaml` of the home, and the environment, which overrides it. If there is no file, the defaults
    are used.

    Raises ConfigurationError with all problems at once. Each problem has its file, line and column, or the name of
    its variable.
    """
    given = os.environ if environ is None else environ
    home = default_home(given)
    return read_config(config_file(home), given).at_home(home)


def read_config(path: Path, environ: Mapping[str, str]) -> Config:
    """Read `environ` and one file, which need not exist. Raises ConfigurationError."""
    return checked(decoded(bytes_of(path) or b"", path), path, environ)


def checked(text: str, path: Path, environ: Mapping[str, str]) -> Config:
    """Return the configuration that results from the text of a file and from `environ`. The errors that it raises
    (ConfigurationError) name `path` as the file.
    """
    tree, places = _parsed(text, path) if text.strip() else ({}, Places(path))
    problems = list(places.problems)
    for warning in leave_out_removed(tree, places):
        warn_once(warning)
    problems += overrides(tree, places, environ)
    apply = places.values.get(("apply",))
    if tree.get("apply") == ApplyMode.ALL and (apply is None or apply.variable is None):
        problems.append(places.problem(("apply",), f"cannot be all in a file: type --apply all or set {APPLY_ALL}"))
    if not tree and not problems:
        # The defaults are valid, so the schema for the check, which takes long to build, is not built.
        return Config.model_construct()
    problems += problems_of(tree, places, Config)
    if problems:
        raise ConfigurationError(report(problems))
    return Config.model_validate(tree)


def _parsed(text: str, path: Path) -> tuple[Tree, Places]:
    """Parse the text of a file. Return its values and the position of each value."""
    # PyYAML takes 35 ms to import, so it is imported only if there is a file.
    from artoo.settings.yaml_file import parse

    return parse(text, path)
