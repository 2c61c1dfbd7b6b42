"""Paths below a home that hold credentials. Commands cannot read them; nothing may be written there."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

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


def secret_paths(home: Path, artoo_home: Path) -> Iterator[Path]:
    """Every path that is secret, whether or not it exists."""
    yield artoo_home
    for relative in (*SECRET_DIRECTORIES, *SECRET_FILES):
        yield home / relative


def existing(paths: Iterable[Path]) -> tuple[Path, ...]:
    """The real paths of those that exist; links are resolved, so that what they lead to is meant."""
    found: dict[Path, None] = {}
    for path in paths:
        if not os.path.lexists(path):
            continue
        try:
            found[path.resolve(strict=True)] = None
        except (OSError, RuntimeError):
            continue
    return tuple(found)
