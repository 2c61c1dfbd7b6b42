"""What a program can have done: the table that ties words of a claim to commands that could make them true."""

from __future__ import annotations

import re
from enum import StrEnum

from artoo.loops.fast.evidence.shell import Step
from artoo.loops.fast.evidence.words import words


class Effect(StrEnum):
    """A kind of change in the world, or of verdict that only a run can give (test, build, lint)."""

    DELETE = "delete"
    MOVE = "move"
    COPY = "copy"
    CREATE = "create"
    EDIT = "edit"
    INSTALL = "install"
    UNINSTALL = "uninstall"
    COMMIT = "commit"
    PUSH = "push"
    DEPLOY = "deploy"
    SEND = "send"
    DOWNLOAD = "download"
    UPLOAD = "upload"
    BUILD = "build"
    TEST = "test"
    LINT = "lint"
    START = "start"
    STOP = "stop"
    PERMISSION = "permission"
    ARCHIVE = "archive"
    EXTRACT = "extract"
    MERGE = "merge"
    SCHEDULE = "schedule"
    CLONE = "clone"
    RESTORE = "restore"
    MIGRATE = "migrate"


E = Effect
NOTHING: frozenset[Effect] = frozenset()
ANYTHING: frozenset[Effect] = frozenset(Effect)
WRITES = frozenset({E.CREATE, E.EDIT})
VERDICTS = frozenset({E.TEST, E.BUILD, E.LINT})
"""Effects that a later change of the files makes stale."""

READERS = frozenset(
    words(
        """ls cat head tail less more grep egrep fgrep rg ag ack find fd locate plocate mdfind wc stat file
        du df ps top htop pgrep pidof lsof ss netstat ip ifconfig ping host dig nslookup traceroute
        whoami id groups uname hostname uptime date cal free vmstat iostat env printenv which whereis
        type pwd tree realpath readlink basename dirname diff cmp comm md5sum sha1sum sha256sum
        sha512sum shasum cksum b2sum sort uniq cut paste tr awk gawk mawk sed jq yq xmllint column nl
        rev tac fold strings xxd hexdump od test [ [[ true false echo printf read seq expr bc dc let cd
        pushd popd exit return shift sleep wait history jobs man help lscpu lsblk lsusb nproc getconf
        journalctl dmesg last who w csvcut csvstat mlr xsv numfmt factor yes tput arch dpkg-query
        exiftool identify ffprobe mediainfo pdfinfo pdftotext nvidia-smi sw_vers system_profiler export
        unset local declare alias set source . : local readonly break continue trap ulimit stty clear
        iconv zcat zgrep bzcat xzcat node-version ipcs mount"""
    )
)
"""Programs that only look (options that make them write are dealt with by `effects_of`)."""

SEARCHERS = frozenset(
    words("""grep egrep fgrep rg ag ack find fd locate plocate mdfind pgrep ls which whereis lsof git dpkg""")
)
FILTERS = frozenset(
    words(
        """cat head tail grep egrep fgrep rg wc sort uniq cut paste tr awk gawk mawk sed jq yq column nl
        rev tac fold tee xargs bc dc strings xxd od base64 md5sum sha1sum sha256sum cksum python python3
        node perl ruby less more numfmt comm"""
    )
)
"""Programs that read what is piped to them when they are given no file."""
LITERALS = frozenset(["echo", "printf", "seq", "yes", "expr", "true", ":", "let"])
"""Programs whose words are their author's, not the machine's."""

_TABLE: dict[str, frozenset[Effect]] = {
    "rm": frozenset({E.DELETE}),
    "unlink": frozenset({E.DELETE}),
    "rmdir": frozenset({E.DELETE}),
    "shred": frozenset({E.DELETE, E.EDIT}),
    "trash": frozenset({E.DELETE, E.MOVE}),
    "trash-put": frozenset({E.DELETE, E.MOVE}),
    "truncate": WRITES | {E.DELETE},
    "mv": frozenset({E.MOVE, E.ARCHIVE, E.DELETE, E.CREATE, E.EDIT, E.RESTORE}),
    "rename": frozenset({E.MOVE, E.EDIT}),
    "cp": frozenset({E.COPY, E.CREATE, E.EDIT, E.RESTORE}),
    "install": frozenset({E.COPY, E.CREATE, E.PERMISSION, E.INSTALL}),
    "ln": frozenset({E.CREATE, E.EDIT}),
    "rsync": frozenset({E.COPY, E.UPLOAD, E.DOWNLOAD, E.DEPLOY, E.CREATE, E.RESTORE}),
    "scp": frozenset({E.COPY, E.UPLOAD, E.DOWNLOAD, E.DEPLOY, E.SEND}),
    "sftp": frozenset({E.COPY, E.UPLOAD, E.DOWNLOAD}),
    "touch": WRITES,
    "mkdir": frozenset({E.CREATE}),
    "mktemp": frozenset({E.CREATE}),
    "mkfifo": frozenset({E.CREATE}),
    "tee": WRITES,
    "dd": WRITES | {E.COPY, E.DELETE},
    "patch": frozenset({E.EDIT}),
    "chmod": frozenset({E.PERMISSION, E.EDIT}),
    "chown": frozenset({E.PERMISSION, E.EDIT}),
    "chgrp": frozenset({E.PERMISSION, E.EDIT}),
    "setfacl": frozenset({E.PERMISSION, E.EDIT}),
    "tar": frozenset({E.ARCHIVE, E.EXTRACT, E.CREATE, E.COPY, E.RESTORE}),
    "zip": frozenset({E.ARCHIVE, E.CREATE}),
    "gzip": frozenset({E.ARCHIVE, E.CREATE}),
    "bzip2": frozenset({E.ARCHIVE, E.CREATE}),
    "xz": frozenset({E.ARCHIVE, E.CREATE}),
    "zstd": frozenset({E.ARCHIVE, E.CREATE, E.EXTRACT}),
    "7z": frozenset({E.ARCHIVE, E.CREATE, E.EXTRACT}),
    "unzip": frozenset({E.EXTRACT, E.CREATE}),
    "gunzip": frozenset({E.EXTRACT, E.CREATE}),
    "unxz": frozenset({E.EXTRACT, E.CREATE}),
    "kill": frozenset({E.STOP}),
    "pkill": frozenset({E.STOP}),
    "killall": frozenset({E.STOP}),
    "shutdown": frozenset({E.STOP, E.START}),
    "reboot": frozenset({E.STOP, E.START}),
    "crontab": frozenset({E.SCHEDULE, E.CREATE, E.EDIT, E.DELETE}),
    "at": frozenset({E.SCHEDULE}),
    "mail": frozenset({E.SEND}),
    "mailx": frozenset({E.SEND}),
    "sendmail": frozenset({E.SEND}),
    "mutt": frozenset({E.SEND}),
    "notify-send": frozenset({E.SEND}),
    "wget": frozenset({E.DOWNLOAD, E.CREATE}),
    "curl": NOTHING,
    "pytest": frozenset({E.TEST}),
    "py.test": frozenset({E.TEST}),
    "unittest": frozenset({E.TEST}),
    "tox": frozenset({E.TEST, E.LINT}),
    "nox": frozenset({E.TEST, E.LINT}),
    "jest": frozenset({E.TEST}),
    "vitest": frozenset({E.TEST}),
    "mocha": frozenset({E.TEST}),
    "ctest": frozenset({E.TEST}),
    "rspec": frozenset({E.TEST}),
    "phpunit": frozenset({E.TEST}),
    "playwright": frozenset({E.TEST}),
    "ruff": frozenset({E.LINT, E.EDIT}),
    "flake8": frozenset({E.LINT}),
    "pylint": frozenset({E.LINT}),
    "mypy": frozenset({E.LINT}),
    "pyright": frozenset({E.LINT}),
    "eslint": frozenset({E.LINT, E.EDIT}),
    "shellcheck": frozenset({E.LINT}),
    "black": frozenset({E.LINT, E.EDIT}),
    "prettier": frozenset({E.LINT, E.EDIT}),
    "tsc": frozenset({E.BUILD, E.LINT, E.CREATE}),
    "gcc": frozenset({E.BUILD, E.CREATE}),
    "g++": frozenset({E.BUILD, E.CREATE}),
    "cc": frozenset({E.BUILD, E.CREATE}),
    "clang": frozenset({E.BUILD, E.CREATE}),
    "rustc": frozenset({E.BUILD, E.CREATE}),
    "javac": frozenset({E.BUILD, E.CREATE}),
    "pdflatex": frozenset({E.BUILD, E.CREATE}),
    "pandoc": frozenset({E.BUILD, E.CREATE}),
    "convert": frozenset({E.CREATE, E.EDIT}),
    "ffmpeg": frozenset({E.CREATE, E.EDIT}),
    "ollama": ANYTHING,
}

_SUBCOMMANDS: dict[str, dict[str, frozenset[Effect]]] = {
    "git": {
        "rm": frozenset({E.DELETE}),
        "clean": frozenset({E.DELETE}),
        "mv": frozenset({E.MOVE}),
        "add": frozenset({E.EDIT}),
        "commit": frozenset({E.COMMIT, E.CREATE}),
        "push": frozenset({E.PUSH, E.UPLOAD}),
        "pull": frozenset({E.DOWNLOAD, E.MERGE, E.EDIT}),
        "fetch": frozenset({E.DOWNLOAD}),
        "merge": frozenset({E.MERGE, E.EDIT, E.COMMIT}),
        "rebase": frozenset({E.MERGE, E.EDIT}),
        "cherry-pick": frozenset({E.MERGE, E.COMMIT, E.EDIT}),
        "clone": frozenset({E.CLONE, E.DOWNLOAD, E.CREATE}),
        "init": frozenset({E.CREATE}),
        "tag": frozenset({E.CREATE}),
        "branch": frozenset({E.CREATE, E.DELETE, E.MOVE}),
        "checkout": frozenset({E.RESTORE, E.CREATE, E.EDIT}),
        "switch": frozenset({E.CREATE, E.EDIT}),
        "restore": frozenset({E.RESTORE, E.EDIT}),
        "revert": frozenset({E.RESTORE, E.COMMIT, E.EDIT}),
        "reset": frozenset({E.RESTORE, E.EDIT, E.DELETE}),
        "stash": frozenset({E.RESTORE, E.CREATE, E.EDIT}),
        "apply": frozenset({E.EDIT}),
        "config": WRITES,
        "remote": WRITES,
    },
    "systemctl": {
        "start": frozenset({E.START}),
        "restart": frozenset({E.START, E.STOP}),
        "reload": frozenset({E.START}),
        "enable": frozenset({E.START, E.EDIT}),
        "stop": frozenset({E.STOP}),
        "disable": frozenset({E.STOP, E.EDIT}),
        "mask": frozenset({E.STOP, E.EDIT}),
        "kill": frozenset({E.STOP}),
    },
    "docker": {
        "build": frozenset({E.BUILD, E.CREATE}),
        "push": frozenset({E.PUSH, E.UPLOAD}),
        "pull": frozenset({E.DOWNLOAD}),
        "run": ANYTHING,
        "exec": ANYTHING,
        "compose": ANYTHING,
        "start": frozenset({E.START}),
        "restart": frozenset({E.START}),
        "stop": frozenset({E.STOP}),
        "kill": frozenset({E.STOP}),
        "rm": frozenset({E.DELETE}),
        "rmi": frozenset({E.DELETE}),
        "system": frozenset({E.DELETE}),
        "cp": frozenset({E.COPY}),
        "tag": frozenset({E.CREATE}),
    },
    "kubectl": {
        "apply": frozenset({E.DEPLOY, E.CREATE, E.EDIT, E.START}),
        "create": frozenset({E.CREATE, E.DEPLOY}),
        "delete": frozenset({E.DELETE, E.STOP}),
        "rollout": frozenset({E.START, E.DEPLOY, E.RESTORE}),
        "scale": frozenset({E.EDIT, E.START, E.STOP}),
        "set": frozenset({E.EDIT, E.DEPLOY}),
    },
    "pip": {
        "install": frozenset({E.INSTALL, E.EDIT}),
        "uninstall": frozenset({E.UNINSTALL, E.DELETE}),
        "download": frozenset({E.DOWNLOAD}),
    },
    "terraform": {"apply": frozenset({E.DEPLOY, E.CREATE, E.EDIT}), "destroy": frozenset({E.DELETE, E.STOP})},
    "cargo": {
        "build": frozenset({E.BUILD}),
        "test": frozenset({E.TEST, E.BUILD}),
        "check": frozenset({E.LINT}),
        "clippy": frozenset({E.LINT}),
        "publish": frozenset({E.PUSH, E.UPLOAD}),
        "run": ANYTHING,
        "install": frozenset({E.INSTALL}),
        "add": frozenset({E.INSTALL, E.EDIT}),
    },
    "go": {
        "build": frozenset({E.BUILD}),
        "test": frozenset({E.TEST}),
        "vet": frozenset({E.LINT}),
        "run": ANYTHING,
        "install": frozenset({E.INSTALL, E.BUILD}),
        "get": frozenset({E.INSTALL}),
    },
}
_PACKAGE_MANAGERS = frozenset(
    words("""apt apt-get dnf yum pacman apk brew snap flatpak conda mamba gem choco winget zypper pip pip3 pipx""")
)
_TASK_RUNNERS = frozenset(
    words(
        """make gmake npm yarn pnpm bun just task rake gradle gradlew ./gradlew mvn ./mvnw ant invoke bazel
        cmake ninja meson dotnet mix composer"""
    )
)

_PURPOSES: tuple[tuple[re.Pattern[str], frozenset[Effect]], ...] = (
    (re.compile(r"test|check|spec|verify|ci\b"), frozenset({E.TEST, E.LINT})),
    (re.compile(r"build|compile|bundle|package\b|dist\b|assemble|\ball\b|release"), frozenset({E.BUILD, E.CREATE})),
    (re.compile(r"deploy|rollout|ship|go-live"), frozenset({E.DEPLOY, E.PUSH, E.UPLOAD, E.START})),
    (re.compile(r"publish|push|release"), frozenset({E.PUSH, E.UPLOAD, E.DEPLOY})),
    (re.compile(r"lint|format|fmt|typecheck"), frozenset({E.LINT, E.EDIT})),
    (
        re.compile(r"(?<!un)install|\bi\b|\badd\b|\bci\b|upgrade|update|setup"),
        frozenset({E.INSTALL, E.EDIT, E.CREATE}),
    ),
    (re.compile(r"uninstall|remove|purge"), frozenset({E.UNINSTALL, E.DELETE})),
    (re.compile(r"clean|delete|prune|wipe"), frozenset({E.DELETE})),
    (re.compile(r"back-?up|dump"), frozenset({E.COPY, E.ARCHIVE, E.CREATE})),
    (re.compile(r"migrat"), frozenset({E.MIGRATE, E.EDIT, E.CREATE})),
    (re.compile(r"send|mail|notif|post\b|publish|reply"), frozenset({E.SEND, E.UPLOAD})),
    (re.compile(r"upload|sync"), frozenset({E.UPLOAD, E.COPY, E.SEND})),
    (re.compile(r"download|fetch|pull"), frozenset({E.DOWNLOAD, E.CREATE})),
    (re.compile(r"restart|start|serve|launch|enable"), frozenset({E.START})),
    (re.compile(r"stop|kill|disable|shutdown"), frozenset({E.STOP})),
    (re.compile(r"restore|rollback|revert"), frozenset({E.RESTORE, E.EDIT, E.CREATE})),
    (re.compile(r"\bgen|create|write|export|render|convert|make_|save"), WRITES),
    (re.compile(r"move|rename|archive"), frozenset({E.MOVE, E.ARCHIVE, E.EDIT})),
    (re.compile(r"edit|updat|modif|set\b|patch|replace|fix"), frozenset({E.EDIT, E.CREATE})),
    (re.compile(r"schedul|remind|event|book"), frozenset({E.SCHEDULE, E.CREATE})),
)
_HEAVY = frozenset({E.TEST, E.BUILD, E.LINT, E.DEPLOY, E.PUSH, E.SEND, E.INSTALL, E.UNINSTALL, E.COMMIT, E.MIGRATE})
"""Effects that a program of unknown nature is believed to have only when its name or arguments say so."""

_REHEARSAL = re.compile(
    r"(?:^|\s)(?:--dry-?run(?:=\w+)?|--just-print|--simulate|--no-act|--what-?if|--check-only"
    r"|--pretend|--noop)(?=\s|$)"
)
_REHEARSAL_SHORT = frozenset({"rsync", "make", "gmake", "apt-get", "apt", "rename"})
_INLINE = frozenset({"python", "python3", "node", "perl", "ruby", "deno", "php", "osascript"})
_CODE_EFFECTS: tuple[tuple[re.Pattern[str], frozenset[Effect]], ...] = (
    (re.compile(r"subprocess|os\.system|child_process|exec\(|`|popen|do shell script"), ANYTHING - VERDICTS),
    (re.compile(r"\bremove\(|unlink|rmtree|rmdir|File\.delete|\bdelete\b"), frozenset({E.DELETE})),
    (
        re.compile(
            r"\.write|write_text|write_bytes|writelines|writeFile|to_csv|to_json|to_excel|\.save"
            r"|\bdump\(|savefig|print\(.*file="
        ),
        WRITES,
    ),
    (re.compile(r"open\([^)]*['\"][wax]b?\+?['\"]|mkdir|makedirs|touch\("), WRITES),
    (re.compile(r"shutil\.copy|copyfile|copytree"), frozenset({E.COPY, E.CREATE})),
    (re.compile(r"shutil\.move|\brename\(|os\.replace|\.replace\((?:Path|['\"]\S*/)"), frozenset({E.MOVE, E.EDIT})),
    (re.compile(r"chmod|chown"), frozenset({E.PERMISSION})),
    (re.compile(r"zipfile|tarfile|make_archive|unpack_archive"), frozenset({E.ARCHIVE, E.EXTRACT, E.CREATE})),
    (
        re.compile(r"smtplib|sendmail|send_message|requests\.(?:post|put|patch|delete)|method=['\"](?:POST|PUT)"),
        frozenset({E.SEND, E.UPLOAD, E.DEPLOY}),
    ),
    (re.compile(r"urlretrieve|requests\.get|urlopen|fetch\("), frozenset({E.DOWNLOAD})),
    (re.compile(r"sqlite3|\.execute\(|INSERT|UPDATE|CREATE TABLE", re.I), WRITES | {E.DELETE, E.MIGRATE}),
    (re.compile(r"os\.kill|terminate\("), frozenset({E.STOP})),
    (re.compile(r"unittest|pytest|doctest"), frozenset({E.TEST})),
    (re.compile(r"\btell application|\bmake new|\bsend\b", re.I), ANYTHING - VERDICTS),
)
_CODE_READS = re.compile(
    r"open\(|read|glob|listdir|scandir|walk\(|Path\(|argv|stdin|environ|requests|urlopen"
    r"|fetch\(|subprocess|popen|connect\(|psutil|platform|socket|getsize|stat\(|disk_usage"
    r"|readFile|datetime|time\.|`|os\.|<>|File\.",
    re.I,
)


def inline_code(step: Step) -> str | None:
    """The program text that an interpreter was given on its command line or by heredoc, else None."""
    if step.program not in _INLINE:
        return None
    for index, word in enumerate(step.words[:-1]):
        if word.text in ("-c", "-e", "-E", "-ne", "-pe", "-i", "-ie", "-lne", "--eval", "eval", "-r"):
            return step.words[index + 1].text
    return step.heredoc if step.heredoc and not [word for word in step.operands if word != "-"] else None


def code_reads(code: str) -> bool:
    """Whether inline code looks at anything outside itself."""
    return _CODE_READS.search(code) is not None


def purposes(text: str) -> frozenset[Effect]:
    """The effects that words such as `deploy`, `test` or `send` in a name announce; empty when none does."""
    split = re.sub(r"(?<=[a-z])(?=[A-Z])|[_\-./:]+", " ", text).lower()
    return frozenset(effect for pattern, effects in _PURPOSES if pattern.search(split) for effect in effects)


def effects_of(step: Step) -> frozenset[Effect]:
    """Everything that this step can have done, if it ended well."""
    if (
        _git_rehearsal(step)
        or _REHEARSAL.search(step.text)
        or (step.program in _REHEARSAL_SHORT and "-n" in step.args)
    ):
        return NOTHING
    written = WRITES if step.writes else NOTHING
    return (
        _program_effects(step) | written | (frozenset({E.COPY}) if written and step.program == "cat" else NOTHING)
    )


def _git_rehearsal(step: Step) -> bool:
    """`git clean -n`: shows what it would do (`git commit -n` is something else)."""
    if step.program != "git" or next(iter(step.operands), "") not in ("clean", "push", "add", "rm", "mv"):
        return False
    return any(re.fullmatch(r"-[a-zA-Z]*n[a-zA-Z]*", word) for word in step.args)


def _program_effects(step: Step) -> frozenset[Effect]:
    args, program = step.args, step.program
    first = next(iter(step.operands), "")
    match program:
        case "sed" | "perl" | "gawk" | "awk" if any(_in_place(word) for word in args):
            return frozenset({E.EDIT, E.CREATE})
        case "sort" if "-o" in args or any(word.startswith("--output") for word in args):
            return WRITES
        case "find" | "fd":
            return _find_effects(step)
        case "curl":
            return _curl_effects(step)
        case "git" if any(word in ("-l", "--list", "-v", "-a", "--get", "--show-current") for word in args) or (
            first in ("stash", "remote", "tag", "branch", "config") and len(step.operands) < 2
        ):
            return NOTHING if first != "stash" else _SUBCOMMANDS["git"]["stash"]
        case "git":
            pushed = first == "push" and re.search(r"heroku|dokku|production|gh-pages", step.text)
            return _SUBCOMMANDS["git"].get(first, NOTHING) | (frozenset({E.DEPLOY}) if pushed else NOTHING)
        case "gzip" | "xz" | "bzip2" if {"-d", "--decompress"} & {*args}:
            return frozenset({E.EXTRACT, E.CREATE})
        case "tar":
            return _tar_effects(step)
        case "crontab" if "-l" in args:
            return NOTHING
        case "ruff" | "eslint" | "black" | "prettier":
            return (
                frozenset({E.LINT})
                if "--check" in args or (first == "check" and "--fix" not in args)
                else _TABLE[program]
            )
        case "brew" if first == "services":
            return frozenset({E.START, E.STOP})
        case "service":
            return _SUBCOMMANDS["systemctl"].get(args[1] if len(args) > 1 else "", NOTHING)
        case _:
            return _by_table(step, first)


def _in_place(word: str) -> bool:
    return word.startswith(("-i", "--in-place", "-pi")) or word == "inplace"


def _find_effects(step: Step) -> frozenset[Effect]:
    if "-delete" in step.args:
        return frozenset({E.DELETE})
    for index, word in enumerate(step.args[:-1]):
        if word in ("-exec", "-execdir", "-ok", "-x", "-X"):
            inner = Step(
                program=step.args[index + 1].rsplit("/", 1)[-1], words=step.words[index + 2 :], text=step.text
            )
            return effects_of(inner)
    return NOTHING


def _curl_effects(step: Step) -> frozenset[Effect]:
    sent = {
        "-d",
        "--data",
        "-F",
        "--form",
        "--data-binary",
        "--json",
        "-T",
        "--upload-file",
        "--data-raw",
        "-X",
    } & {*step.args}
    method = next(
        (step.args[i + 1].upper() for i, word in enumerate(step.args[:-1]) if word in ("-X", "--request")), ""
    )
    if sent and method not in ("GET", "HEAD"):
        return frozenset(
            {E.SEND, E.UPLOAD, E.DEPLOY, E.CREATE, E.EDIT, E.START} | ({E.DELETE} if method == "DELETE" else set())
        )
    saved = any(re.fullmatch(r"-\w*[oO]\w*|--output|--remote-name", word) for word in step.args)
    return frozenset({E.DOWNLOAD, E.CREATE}) if saved or step.writes else NOTHING


def _tar_effects(step: Step) -> frozenset[Effect]:
    flags = (step.args[0] if step.args else "").lstrip("-")
    if "t" in flags or "--list" in step.args:
        return NOTHING
    return frozenset({E.EXTRACT, E.CREATE, E.RESTORE}) if "x" in flags else frozenset({E.ARCHIVE, E.CREATE, E.COPY})


def _by_table(step: Step, first: str) -> frozenset[Effect]:
    program = (
        "pip" if step.program in ("pip3", "pip3.11") else "docker" if step.program == "podman" else step.program
    )
    if program in _TABLE:
        return _TABLE[program]
    if program in _SUBCOMMANDS:
        return _SUBCOMMANDS[program].get(first, NOTHING)
    if program in READERS:
        return NOTHING
    if program in _PACKAGE_MANAGERS:
        return purposes(first) & {E.INSTALL, E.UNINSTALL, E.DELETE, E.EDIT, E.DOWNLOAD}
    if program in _TASK_RUNNERS:
        named = purposes(" ".join(step.operands) or ("all" if program in ("make", "gmake", "ninja") else ""))
        return named or (ANYTHING - _HEAVY)
    code = inline_code(step)
    if code is not None:
        return frozenset(effect for pattern, effects in _CODE_EFFECTS if pattern.search(code) for effect in effects)
    return _unknown(step)


def _unknown(step: Step) -> frozenset[Effect]:
    """A script or program that the table does not know: any plain effect, heavy ones only when it is named so."""
    script = next((word for word in step.operands if not word.startswith("http")), "")
    words = f"{step.program} {script} " + " ".join(word for word in step.args if re.fullmatch(r"[-\w]{2,20}", word))
    named = purposes(words)
    return named | (ANYTHING - _HEAVY) if named else ANYTHING - {E.TEST, E.LINT}


def tool_effects(tool: str, text: str) -> frozenset[Effect]:
    """What a tool other than the shell can have done, from the verbs in its name (and an MCP tool's own name)."""
    split = re.sub(r"(?<=[a-z])(?=[A-Z])|[_\-./:]+", " ", tool.rsplit(":", 1)[-1].rsplit("__", 1)[-1]).lower()
    if re.search(
        r"\b(?:read|glob|list|get|search|find|query|fetch|lookup|describe|show|view|count|index|status|stat)\b",
        split,
    ):
        return NOTHING
    if re.search(r"\b(?:write|edit|create|save|append|patch|replace)\b", split) and "file" in split:
        return WRITES
    named = purposes(split)
    if split == "mcp" or split.startswith("mcp "):
        return named or purposes(text[:200]) or ANYTHING - VERDICTS
    return named or ANYTHING - VERDICTS
