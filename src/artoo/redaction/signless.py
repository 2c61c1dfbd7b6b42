"""Find secrets without a prefix, such as card numbers, key blocks and random strings, by entropy.

For each form, a fast check in C runs over the whole text first, so that text without secrets takes few passes.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator

_TO_SHAPE = bytes.maketrans(b"123456789-", b"000000000 ")
_TO_RUNS = bytes(97 if (chr(one).isascii() and chr(one).isalnum()) or one in b"+/" else 32 for one in range(256))
_RUN = b" " + b"a" * 40 + b" "
_CARD = re.compile(rb"(?<![\d-])(?P<value>[3-6]\d{3}([ -])\d{4}\2\d{4}\2\d{4})(?![\d-])")
_END_OF_KEY = re.compile(rb"-----END [A-Z0-9 ]{0,40}PRIVATE KEY-----")
_LAST_LINE = re.compile(rb"(?<!\\)[A-Za-z0-9+/=]{3,76}(?:\\{1,7}[nr]|[\r\n])+\Z")
# Maximum number of lines of a key, and maximum number of bytes of a line. The largest key of OpenSSL (RSA with
# 16,384 bits) has some 200 lines.
_MOST_LINES, _LONGEST_LINE = 400, 160
_BOT = re.compile(rb"\.(?<=[\w-]{22}\.)(?P<value>[\w-]{6}\.[\w-]{27,40})(?![\w.-])")
_SK = re.compile(rb"SK(?<![A-Za-z0-9]SK)(?P<value>[0-9a-f]{32})(?![\w-])")
_FORTY = re.compile(rb"(?<![A-Za-z0-9+/=_.-])(?P<value>[A-Za-z0-9+/]{40})(?![A-Za-z0-9+/=_.-])")
# Entropy in bits for each letter, for 40 letters. Random base64 has 4.6 on average, hex has at most 4, and words
# and paths have less.
_LEAST_ENTROPY = 4.25


def signless(text: bytes) -> Iterator[tuple[int, int]]:
    """Return the spans of secrets that have no prefix."""
    if b"0000 0000 0000" in text.translate(_TO_SHAPE):
        for match in _CARD.finditer(text):
            if _is_card(match["value"]):
                yield match.span("value")
    if b"PRIVATE KEY-----" in text:
        for end in _END_OF_KEY.finditer(text):
            start = _start_of_lines(text, end.start())
            if start < end.start():
                yield start, end.start()
    for pattern in (_BOT, _SK):
        for match in pattern.finditer(text):
            yield match.span("value")
    if _RUN in b" %b " % text.translate(_TO_RUNS):
        for match in _FORTY.finditer(text):
            if _is_random(match["value"]):
                yield match.span("value")


def _start_of_lines(text: bytes, end: int) -> int:
    """Return the start of the lines of base64 that end directly before `end`. Return `end` if there are none.

    The search goes from the end line by line. A search from the front would try every letter of other base64 text,
    which takes quadratic time."""
    start = end
    for _ in range(_MOST_LINES):
        line = _LAST_LINE.search(text, max(0, start - _LONGEST_LINE), start)
        if line is None:
            break
        start = line.start()
    return start


def _is_card(text: bytes) -> bool:
    """Return whether the last digit is the correct check digit (ISO/IEC 7812)."""
    digits = [digit - 48 for digit in text if 48 <= digit < 58]
    doubled = (sum(divmod(2 * digit, 10)) if place % 2 == 0 else digit for place, digit in enumerate(digits))
    return sum(doubled) % 10 == 0


def _is_random(text: bytes) -> bool:
    """Return whether the text looks random: it has all kinds of letters and a high entropy, unlike a path or a
    word."""
    kinds = (rb"[a-z]", rb"[A-Z]", rb"\d", rb"[+/]")
    if not all(re.search(kind, text) for kind in kinds):
        return False
    counts = Counter(text).values()
    return -sum(count / 40 * math.log2(count / 40) for count in counts) >= _LEAST_ENTROPY
