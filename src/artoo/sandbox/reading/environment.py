"""Build the environment of a command: an allow-list of the user's variables, and settings that keep programs quiet.

A list of secret names is never complete (`MYSQL_PWD`, `SSHPASS`, a connection string under any name). A variable
therefore passes only if its name is known to say where programs are or how they behave, and its value holds no
credential.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

from artoo.ports.sandbox import Roots
from artoo.ports.workspace import Command
from artoo.redaction import holds_secret

_PASSED = re.compile(
    # who and where
    r"PATH|USER|LOGNAME|SHELL|HOSTNAME|PWD|OLDPWD|LANG|LANGUAGE|LC_[A-Z]+|TZ|COLUMNS|LINES|EDITOR|VISUAL|COLORTERM"
    r"|NO_COLOR|FORCE_COLOR|CLICOLOR|CLICOLOR_FORCE|CI|SOURCE_DATE_EPOCH|DEBIAN_FRONTEND|XDG_(CONFIG|DATA|STATE)_HOME"
    r"|XDG_(DATA|CONFIG)_DIRS|MANPATH|INFOPATH|TERMINFO|TERMINFO_DIRS|NIX_PATH|NIX_PROFILES"
    # languages and their tools
    r"|PYTHON(PATH|HOME|UTF8|IOENCODING|HASHSEED|UNBUFFERED|DONTWRITEBYTECODE|WARNINGS|OPTIMIZE|NOUSERSITE|USERBASE)"
    r"|VIRTUAL_ENV|CONDA_(PREFIX|DEFAULT_ENV|EXE|PYTHON_EXE)|PYENV_(ROOT|VERSION)|PIPX_(HOME|BIN_DIR)|UV_(PYTHON|TOOL_DIR)"
    r"|NODE_(PATH|ENV|VERSION)|NVM_(DIR|BIN|INC)|VOLTA_HOME|BUN_INSTALL|DENO_(DIR|INSTALL)|PNPM_HOME|COREPACK_HOME"
    r"|GO(PATH|ROOT|BIN|OS|ARCH|FLAGS|WORK|TOOLCHAIN|CACHE|MODCACHE|111MODULE)|CGO_ENABLED|CARGO_HOME|CARGO_TARGET_DIR"
    r"|RUSTUP_(HOME|TOOLCHAIN)|RUSTFLAGS|RUST_BACKTRACE|JAVA_HOME|JDK_HOME|M2_HOME|MAVEN_HOME|GRADLE_HOME|KOTLIN_HOME"
    r"|ANDROID_(HOME|SDK_ROOT|NDK_HOME)|SDKMAN_DIR|RBENV_(ROOT|VERSION)|GEM_(HOME|PATH)|RUBYLIB|RUBYOPT|BUNDLE_GEMFILE"
    r"|ASDF_(DIR|DATA_DIR)|PERL5LIB|PERL_(LOCAL_LIB_ROOT|MB_OPT|MM_OPT)|R_(HOME|LIBS|LIBS_USER)|JULIA_DEPOT_PATH"
    r"|DOTNET_ROOT|DOTNET_CLI_TELEMETRY_OPTOUT|LUA_(PATH|CPATH)|GHCUP_INSTALL_BASE_PREFIX"
    # building
    r"|CC|CXX|CPP|LD|AR|AS|NM|RANLIB|STRIP|FC|CFLAGS|CXXFLAGS|CPPFLAGS|LDFLAGS|FFLAGS|LIBS|ARFLAGS|MAKEFLAGS|MAKE"
    r"|ARCHFLAGS|MACOSX_DEPLOYMENT_TARGET|SDKROOT|DEVELOPER_DIR|PKG_CONFIG(_PATH|_LIBDIR)?|LD_LIBRARY_PATH|LIBRARY_PATH"
    r"|C_INCLUDE_PATH|CPATH|CPLUS_INCLUDE_PATH|ACLOCAL_PATH|CMAKE_(PREFIX_PATH|GENERATOR|BUILD_TYPE|BUILD_PARALLEL_LEVEL)"
    r"|OMP_NUM_THREADS|MKL_NUM_THREADS|OPENBLAS_NUM_THREADS|CUDA_(HOME|PATH|VISIBLE_DEVICES)|HIP_VISIBLE_DEVICES"
    # where packages come from, and whom to believe: addresses, unless they hold a name and a password
    r"|PIP_(INDEX_URL|EXTRA_INDEX_URL|TRUSTED_HOST|CERT|FIND_LINKS|NO_INDEX|DEFAULT_TIMEOUT|DISABLE_PIP_VERSION_CHECK"
    r"|CONFIG_FILE|ROOT_USER_ACTION|BREAK_SYSTEM_PACKAGES)|UV_(INDEX_URL|EXTRA_INDEX_URL|DEFAULT_INDEX|INDEX|NATIVE_TLS"
    r"|LINK_MODE)|npm_config_(registry|cafile|strict_ssl)|NPM_CONFIG_(REGISTRY|CAFILE|STRICT_SSL)|GO(PROXY|SUMDB|NOSUMDB)"
    r"|SSL_CERT_(FILE|DIR)|REQUESTS_CA_BUNDLE|CURL_CA_BUNDLE|NODE_EXTRA_CA_CERTS|GIT_SSL_CAINFO"
    # a name for commits, and where repositories are looked for
    r"|GIT_(AUTHOR|COMMITTER)_(NAME|EMAIL|DATE)|GIT_CONFIG_NOSYSTEM|EMAIL"
    r"|GIT_(CEILING_DIRECTORIES|DISCOVERY_ACROSS_FILESYSTEM)"
)
_ACROSS, _CEILINGS = "GIT_DISCOVERY_ACROSS_FILESYSTEM", "GIT_CEILING_DIRECTORIES"
_WITH_CREDENTIALS = re.compile(r"://[^/\s]*@")

QUIET: Mapping[str, str] = {
    "HISTFILE": "/dev/null",
    "LESSHISTFILE": "-",
    "PYTHON_HISTORY": "/dev/null",
    "NODE_REPL_HISTORY": "",
    "SQLITE_HISTORY": "/dev/null",
    "XDG_CACHE_HOME": "/tmp/.cache",
    "npm_config_cache": "/tmp/.cache/npm",
    "TMPDIR": "/tmp",
    "npm_config_logs_max": "0",
    "npm_config_update_notifier": "false",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "TERM": "dumb",
    "LSAN_OPTIONS": "detect_leaks=0",
    "RUFF_CACHE_DIR": "/tmp/.cache/ruff",
    "MYPY_CACHE_DIR": "/tmp/.cache/mypy",
    "HYPOTHESIS_STORAGE_DIRECTORY": "/tmp/.cache/hypothesis",
    "NUMBA_CACHE_DIR": "/tmp/.cache/numba",
}
"""Settings under which ordinary programs leave no history behind, keep their caches out of the user's folders, and
ask nothing. Python's byte code is an exception: with PYTHONPYCACHEPREFIX no program finds what is compiled already,
and `import pytest` takes 600 ms instead of 130. Sanitizers look for leaks by `ptrace`, which no command may use
(`seccomp`), and fail where they cannot."""


@lru_cache(maxsize=512)
def passes(name: str, value: str) -> bool:
    """True if commands may see a variable of the user's."""
    return bool(_PASSED.fullmatch(name)) and not _WITH_CREDENTIALS.search(value) and not holds_secret(value)


def cleaned(outer: Mapping[str, str], roots: Roots, command: Command) -> dict[str, str]:
    """Return the environment for a command: what passes of `outer`, quiet settings, then the command's own.

    A variable that a policy line opens, or that the user approved for this command, passes whatever it holds. This
    looks at the file system of the project.
    """
    named = command.keep_env | roots.opened.variables
    merged = {name: value for name, value in outer.items() if name in named or passes(name, value)}
    found = _where_git_looks(merged, roots.project)
    return {**merged, **found, **QUIET, "HOME": str(roots.home), **command.env}


def _where_git_looks(user: Mapping[str, str], project: Path) -> dict[str, str]:
    """Return settings by which git finds the repository of a project where it does outside: also above it.

    git looks no higher than the top of a file system, and each overlay is one of its own. These settings let it go
    on, up to the top of the file system that it meets outside.
    """
    if _ACROSS in user:
        return {}
    above = _above_its_file_system(project)
    ceilings = ":".join(filter(None, (user.get(_CEILINGS), None if above is None else str(above))))
    return {_ACROSS: "1", **({_CEILINGS: ceilings} if ceilings else {})}


@lru_cache(maxsize=16)
def _above_its_file_system(path: Path) -> Path | None:
    """Return the lowest directory above `path` that is on another file system; None when there is none.

    Looked up once in a process: every command asks, and the answer changes only with a mount above the project.
    """
    try:
        device = path.stat().st_dev
        return next((above for above in path.parents if above.stat().st_dev != device), None)
    except OSError:
        return None
