"""Paths below a home that hold credentials. Commands cannot read them; nothing may be written there."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path

LAYER_TREES = ("project", "workspace")
"""The directories of a layer that commands may see; the rest of it is artoo's record."""

SECRET_DIRECTORIES = (
    ".ssh",
    ".gnupg",
    ".aws",
    ".azure",
    ".kube",
    ".oci",
    ".pki",
    ".password-store",
    ".1password",
    ".electrum",
    ".ethereum",
    ".bitcoin",
    ".mozilla",
    ".thunderbird",
    ".config/gcloud",
    ".config/gh",
    ".config/hub",
    ".config/op",
    ".config/sops",
    ".config/age",
    ".config/rclone",
    ".config/Bitwarden",
    ".config/google-chrome",
    ".config/chromium",
    ".config/BraveSoftware",
    ".config/microsoft-edge",
    ".config/vivaldi",
    ".config/opera",
    ".config/github-copilot",
    ".local/share/keyrings",
    ".local/share/kwalletd",
    "snap/firefox",
    "snap/chromium",
    ".var/app/org.mozilla.firefox",
    ".var/app/com.google.Chrome",
    ".var/app/org.chromium.Chromium",
    "Library/Keychains",
    "Library/Cookies",
    "Library/Safari",
    "Library/Application Support/Google/Chrome",
    "Library/Application Support/Firefox",
    "Library/Application Support/BraveSoftware",
)
SECRET_FILES = (
    ".netrc",
    ".pgpass",
    ".my.cnf",
    ".git-credentials",
    ".config/git/credentials",
    ".npmrc",
    ".yarnrc.yml",
    ".pypirc",
    ".s3cfg",
    ".boto",
    ".vault-token",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".gem/credentials",
    ".docker/config.json",
    ".config/containers/auth.json",
    ".composer/auth.json",
    ".config/composer/auth.json",
    ".m2/settings-security.xml",
    ".terraform.d/credentials.tfrc.json",
    ".claude/.credentials.json",
    ".codex/auth.json",
    ".cache/huggingface/token",
)

SETTINGS_FILES = (
    ".gitconfig",
    ".config/git/config",
    ".pip/pip.conf",
    ".config/pip/pip.conf",
    ".config/uv/uv.toml",
    ".condarc",
)
"""What programs need (a name for commits, the address of an index), and what some people keep credentials in."""

_CREDENTIAL = re.compile(
    rb"://[^/\s:@]+:[^/\s@]+@|^\s*[\w.-]*(password|passwd|token|extraheader)\s*[=:]\s*\S",
    re.IGNORECASE | re.MULTILINE,
)
_MOST_SETTINGS = 64 * 1024


def secret_paths(home: Path, artoo_home: Path, layer: Path | None = None) -> Iterator[Path]:
    """Every path that is secret, whether or not it exists; of files of settings those that hold credentials.

    A `layer` lies in artoo's own home: then everything beside the way to its trees is named instead of the whole.
    """
    if layer is None:
        yield artoo_home
    else:
        yield from _beside(artoo_home.resolve(), layer)
    yield from _below(home)
    for relative in SETTINGS_FILES:
        if _holds_credentials(home / relative):
            yield home / relative


def _holds_credentials(path: Path) -> bool:
    """Whether a file of settings names a password or a token, or holds one in a URL; a large one might."""
    try:
        with path.open("rb") as file:
            content = file.read(_MOST_SETTINGS + 1)
    except OSError:  # not there, or not readable for commands either
        return False
    return len(content) > _MOST_SETTINGS or bool(_CREDENTIAL.search(content))


@lru_cache(maxsize=8)
def _below(home: Path) -> tuple[Path, ...]:
    return tuple(home / relative for relative in (*SECRET_DIRECTORIES, *SECRET_FILES))


def _beside(artoo_home: Path, layer: Path) -> Iterator[Path]:
    """What is in artoo's home (real, as is the layer) and not in the layer's trees."""
    way = {layer, *layer.parents}
    for directory in sorted(place for place in way if place == artoo_home or artoo_home in place.parents):
        for child in sorted(directory.iterdir()):
            if child not in way and not _is_tree(child, layer):
                yield child


def _is_tree(child: Path, layer: Path) -> bool:
    return child.parent == layer and child.name in LAYER_TREES


def existing(paths: Iterable[Path]) -> tuple[Path, ...]:
    """The real paths of those that exist; links are resolved, so that what they lead to is meant."""
    found: dict[Path, None] = {}
    there: dict[Path, bool] = {}
    for path in paths:
        above = path.parent
        if above not in there:
            there[above] = above.is_dir()
        if not there[above] or not os.path.lexists(path):
            continue
        try:
            found[path.resolve(strict=True)] = None
        except (OSError, RuntimeError):
            continue
    return tuple(found)
