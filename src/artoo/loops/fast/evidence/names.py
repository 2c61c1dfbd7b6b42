"""Names in plain text: files, paths, hosts, and whatever is quoted, in English, Chinese and mixed sentences."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from functools import lru_cache

from artoo.loops.fast.evidence.words import words

TEXT_CHARACTERS = 20_000
"""How much of a text is searched for names."""

_EXTENSIONS = frozenset(
    words(
        """txt md rst csv tsv json jsonl yaml yml toml ini cfg conf config env log xml html htm css scss js
        jsx mjs cjs ts tsx vue py pyx pyi ipynb rb php pl lua go rs c h cc cpp cxx hpp hh java kt kts
        scala swift m mm cs fs vb r jl sql sh bash zsh fish ps1 bat cmd tf hcl proto graphql lock sum
        mod mk pdf doc docx xls xlsx ppt pptx odt ods odp rtf tex bib epub png jpg jpeg gif svg webp bmp
        tiff ico heic mp3 wav flac ogg m4a mp4 mov avi mkv webm zip tar gz tgz bz2 xz zst 7z rar whl jar
        war deb rpm dmg iso img bin exe dll so a o db sqlite sqlite3 parquet feather pkl npy npz h5 gguf
        onnx pt safetensors bak old orig tmp swp pid sock key pem crt cer pub gpg asc service timer
        desktop plist vcf ics eml mbox dat out diff patch map min data example sample template
        dockerignore gitignore editorconfig properties gradle srt vtt"""
    )
)
_TOP_LEVEL = (
    "com|org|net|io|dev|edu|gov|local|internal|lan|cn|de|uk|fr|eu|jp|app|cloud|ai|co"
    "|info|test|example|invalid|corp|home|xyz|me|us|ch|at|nl|se|tv"
)
_BARE_FILES = (
    r"Makefile|Dockerfile|Gemfile|Rakefile|Procfile|Jenkinsfile|Vagrantfile|README|LICENSE|CHANGELOG|CONTRIBUTING"
)
_PRODUCTS = frozenset(
    {"node.js", "next.js", "vue.js", "react.js", "asp.net", "three.js", "d3.js", "socket.io", "e.g", "i.e"}
)

_QUOTED = re.compile(
    r"`([^`\n]{1,200})`|「([^」\n]{1,200})」|『([^』\n]{1,200})』|《([^》\n]{1,200})》|“([^”\n]{1,200})”"
    r"|\"([^\"\n]{1,200})\"|‘([^’\n]{1,200})’|(?<![\w])'([^'\n]{1,200})'(?!\w)"
)
_URL = re.compile(r"\b[a-z][a-z0-9+.-]{1,10}://[^\s'\"`<>()（）「」，。；]+", re.I)
_LONG = re.compile(r"[^\s,;，。；、]{301,}")
_MAIL = re.compile(r"(?<![A-Za-z0-9._%+-])[A-Za-z0-9._%+-]{1,64}@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+")
_PATH = re.compile(
    r"(?<![A-Za-z0-9_./~:@-])(?:~|\.{1,2})?/?[A-Za-z0-9_.@%+*?-]+(?:/[A-Za-z0-9_.@%+*?-]+)+/?"
    r"|(?<![\w.~/])(?:~|\.{1,2})?/[A-Za-z0-9_.@%+*?-]+/?|(?<![\w/.])[A-Za-z0-9_.@%+*?-]+/(?![\w/])"
)
_FILE = re.compile(
    r"(?<![A-Za-z0-9_./@-])\.?[A-Za-z0-9_*?@%+-][A-Za-z0-9_.*?@%+-]*\.([A-Za-z][A-Za-z0-9]{0,11})(?![A-Za-z0-9_])"
)
_DOT_FILE = re.compile(r"(?<![A-Za-z0-9_./])\.[a-z][A-Za-z0-9_-]{2,}(?![A-Za-z0-9_])")
_BARE = re.compile(rf"(?<![A-Za-z0-9_./-])(?:{_BARE_FILES})(?![A-Za-z0-9_/-])")
_HOST = re.compile(
    rf"(?<![A-Za-z0-9_./@-])(?:[A-Za-z0-9-]+\.)+(?:{_TOP_LEVEL})(?![A-Za-z0-9_-])(?!\.[A-Za-z0-9])", re.I
)
_ADDRESS = re.compile(r"(?<![\d.])\d{1,3}(?:\.\d{1,3}){3}(?![\d.])")
_HAN_FILE = re.compile(r"[一-鿿][一-鿿A-Za-z0-9_-]{0,30}\.([A-Za-z][A-Za-z0-9]{1,5})(?![A-Za-z0-9_])")
_HAN_LEAD = re.compile(
    r"^.*(?:已经|成功|删除|创建|新建|生成|读取|打开|写入|保存|修改|移动|复制|重命名|下载|上传|文件|目录|名为|叫做|叫|了|将|把|到|为|在|的|和|与|及|从|向|是|于|给|对)(?=.)"
)


def names_in(text: str) -> tuple[str, ...]:
    """File names, paths, hosts, addresses and quoted words of a text, in order of appearance, each once."""
    return tuple(name for name, _ in _spans(text))


def without_names(text: str) -> str:
    """The text with every unquoted name and every quoted one blanked, so that digits in them are no figures."""
    for name, _ in sorted(_spans(text), key=lambda each: -len(each[0])):
        if not re.fullmatch(r"[\d,. ]+%?(?:\s?[A-Za-z]{1,3})?", name):
            text = re.sub(rf"(?<![A-Za-z0-9_]){re.escape(name)}(?![A-Za-z0-9_])", " ⟨⟩ ", text)
    return text


@lru_cache(maxsize=128)
def _spans(text: str) -> tuple[tuple[str, int], ...]:
    """Names and where they begin. Remembered: one claim is searched several times, clause by clause."""
    rest = _LONG.sub(lambda match: " " * len(match[0]), text[:TEXT_CHARACTERS])
    found: dict[str, int] = {}

    def take(name: str, start: int, end: int) -> None:
        nonlocal rest
        name = name.strip().rstrip(".,;:，。；：!?！？)）")
        if name:
            found.setdefault(name, start)
            rest = f"{rest[:start]}{chr(0) * (end - start)}{rest[end:]}"

    for match in _QUOTED.finditer(rest):
        index = match.lastindex or 1
        take(match[index], match.start(), match.end())
    for pattern in (_URL, _MAIL, _ADDRESS, _HOST, _PATH, _FILE, _HAN_FILE, _BARE, _DOT_FILE):
        for match in pattern.finditer(rest):
            name = _accepted(pattern, match)
            if name:
                take(name, match.start(), match.end())
    return tuple(sorted(found.items(), key=lambda each: each[1]))


def _accepted(pattern: re.Pattern[str], match: re.Match[str]) -> str:
    text = match[0]
    if pattern is _FILE:
        known = match[1].lower() in _EXTENSIONS and text.lower() not in _PRODUCTS
        return text if known and (len(text) > len(match[1]) + 1 or text.startswith(".")) else ""
    if pattern is _HAN_FILE:
        return _HAN_LEAD.sub("", text) if match[1].lower() in _EXTENSIONS else ""
    if pattern is _PATH:
        parts = text.rstrip(".,").split("/")
        rooted = text.startswith(("/", "~", "./", "../")) or text.endswith("/")
        listed = any("." in part and part.rsplit(".", 1)[1].lower() in _EXTENSIONS for part in parts)
        numeric = all(re.fullmatch(r"[\d.]*", part) for part in parts)
        return text if not numeric and (rooted or listed or len(parts) > 2) and text.strip("/.") else ""
    return text


def is_file_like(name: str) -> bool:
    """Whether a name has the shape of a file, a path, a host or an address (not merely quoted words)."""
    return " " not in name and any(
        pattern.fullmatch(name)
        for pattern in (_PATH, _FILE, _HOST, _ADDRESS, _URL, _MAIL, _BARE, _DOT_FILE, _HAN_FILE)
    )


def mentions(text: str, name: str, *, globs: bool = True) -> bool:
    """Whether a text names this thing: itself, its last part, a glob that covers it, or a directory above it."""
    low, sought = text.lower(), name.lower().rstrip("/")
    last = sought.rsplit("/", 1)[-1]
    if contains_word(low, sought) or ("/" in sought and last and contains_word(low, last)):
        return True
    if " " in sought and sought in low:
        return True
    return (
        globs
        and bool(last)
        and any(_covers(token, sought, last) for token in re.findall(r"[^\s'\"`;|&()<>]{2,}", low))
    )


def _covers(token: str, name: str, last: str) -> bool:
    if "*" in token or "?" in token or "[" in token:
        return token.strip("*?") != "" and (
            fnmatchcase(name, token) or fnmatchcase(last, token.rsplit("/", 1)[-1] or "-")
        )
    return token.endswith("/") and name.startswith(token.removeprefix("./"))


def contains_word(text: str, word: str) -> bool:
    """Whether a word stands in a text on its own: `a.txt` is not in `data.txt`, nor in `a.txt.bak`."""
    start = text.find(word) if word else -1  # a name may be nothing but slashes
    while start >= 0:
        before, after = text[start - 1 : start], text[start + len(word) : start + len(word) + 2]
        clear_before = not (
            before
            and word[:1].isascii()
            and (before.isascii() and (before.isalnum() or before in "_.-"))
            and word[0].isalnum()
        )
        clear_after = not (
            after
            and word[-1:].isascii()
            and after[0].isascii()
            and (after[0].isalnum() or after[0] in "_-" or (after[0] == "." and after[1:].isalnum()))
        )
        if clear_before and clear_after:
            return True
        start = text.find(word, start + 1)
    return False
