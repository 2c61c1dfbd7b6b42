"""Figures as people and programs write them: separators, units, percentages, number words, Chinese numerals."""

from __future__ import annotations

import re
from dataclasses import dataclass

from artoo.loops.fast.evidence.words import ordered

TEXT_CHARACTERS = 20_000
"""How much of a text is read for figures."""


@dataclass(frozen=True, slots=True)
class Quantity:
    """One figure of a text.

    `step` is the size of its last written digit (12.3 → 0.1, 1.2 million → 100,000): what rounding may hide.
    `unit` is a canonical unit ("" when none was written), `start` and `end` its place in the text.
    """

    value: float
    step: float
    unit: str = ""
    text: str = ""
    start: int = 0
    end: int = 0
    worded: bool = False

    @property
    def kind(self) -> str:
        """The kind of its unit: bytes, time, percent, mass, length, money, or the unit itself."""
        return UNITS[self.unit][0] if self.unit in UNITS else self.unit


UNITS: dict[str, tuple[str, float]] = {
    "B": ("bytes", 1), "KB": ("bytes", 1e3), "MB": ("bytes", 1e6), "GB": ("bytes", 1e9), "TB": ("bytes", 1e12),
    "KiB": ("bytes", 1024), "MiB": ("bytes", 1024**2), "GiB": ("bytes", 1024**3), "TiB": ("bytes", 1024**4),
    "ns": ("time", 1e-9), "us": ("time", 1e-6), "ms": ("time", 1e-3), "s": ("time", 1),
    "min": ("time", 60), "h": ("time", 3600), "d": ("time", 86400),
    "mg": ("mass", 1e-6), "g": ("mass", 1e-3), "kg": ("mass", 1), "t": ("mass", 1000), "lb": ("mass", 0.45359237),
    "mm": ("length", 1e-3), "cm": ("length", 1e-2), "m": ("length", 1), "km": ("length", 1e3),
    "mi": ("length", 1609.344), "in": ("length", 0.0254), "ft": ("length", 0.3048),
    "°C": ("degree", 1), "°F": ("degree", 2), "K°": ("degree", 3),
    "$": ("money", 1), "€": ("money", 2), "£": ("money", 3), "¥": ("money", 4),
    "%": ("percent", 1), "lines": ("lines", 1), "words": ("words", 1), "characters": ("characters", 1),
}  # fmt: skip
"""Canonical unit → its kind and its size in the kind's base (money and degrees only tell units apart)."""

_SPELLINGS: dict[str, str] = {
    "b": "B", "byte": "B", "bytes": "B", "字节": "B", "kb": "KB", "k": "KB", "kilobyte": "KB",
    "kilobytes": "KB", "千字节": "KB",
    "mb": "MB", "m": "MB", "megabyte": "MB", "megabytes": "MB", "兆字节": "MB", "兆": "MB", "gb": "GB",
    "g": "GB", "gigabyte": "GB",
    "gigabytes": "GB", "吉字节": "GB", "tb": "TB", "t": "TB", "terabyte": "TB", "terabytes": "TB",
    "kib": "KiB", "mib": "MiB",
    "gib": "GiB", "tib": "TiB", "ki": "KiB", "mi": "MiB", "gi": "GiB", "ns": "ns", "nanoseconds": "ns",
    "us": "us", "µs": "us", "microseconds": "us",
    "ms": "ms", "msec": "ms", "millisecond": "ms", "milliseconds": "ms", "毫秒": "ms", "s": "s",
    "sec": "s", "secs": "s", "second": "s",
    "seconds": "s", "秒": "s", "秒钟": "s", "min": "min", "mins": "min", "minute": "min",
    "minutes": "min", "分钟": "min", "h": "h", "hr": "h", "hrs": "h",
    "hour": "h", "hours": "h", "小时": "h", "day": "d", "days": "d", "天": "d", "mg": "mg", "gram": "g",
    "grams": "g", "克": "g",
    "kg": "kg", "kilogram": "kg", "kilograms": "kg", "公斤": "kg", "千克": "kg", "ton": "t", "tons": "t",
    "tonnes": "t", "吨": "t", "lb": "lb", "lbs": "lb",
    "pounds": "lb", "mm": "mm", "cm": "cm", "厘米": "cm", "毫米": "mm", "meters": "m", "metres": "m",
    "meter": "m", "米": "m", "km": "km",
    "kilometers": "km", "kilometres": "km", "公里": "km", "千米": "km", "miles": "mi", "mile": "mi",
    "feet": "ft", "ft": "ft", "inches": "in",
    "°c": "°C", "℃": "°C", "celsius": "°C", "度": "°C", "°f": "°F", "fahrenheit": "°F", "%": "%",
    "percent": "%", "％": "%", "per cent": "%",
    "$": "$", "usd": "$", "dollars": "$", "dollar": "$", "美元": "$", "€": "€", "eur": "€", "euro": "€",
    "euros": "€", "欧元": "€", "£": "£", "gbp": "£",
    "¥": "¥", "￥": "¥", "cny": "¥", "rmb": "¥", "yuan": "¥", "元": "¥", "块钱": "¥", "人民币": "¥",
    "lines": "lines", "line": "lines", "行": "lines",
    "words": "words", "characters": "characters", "chars": "characters", "字符": "characters",
}  # fmt: skip
_AMBIGUOUS = frozenset({"m", "t", "g", "k", "b", "d", "h", "s", "mi", "in"})
_SCALES = {
    "k": 1e3,
    "thousand": 1e3,
    "million": 1e6,
    "mn": 1e6,
    "billion": 1e9,
    "bn": 1e9,
    "hundred": 1e2,
    "dozen": 12.0,
    "千": 1e3,
    "万": 1e4,
    "亿": 1e8,
    "百万": 1e6,
    "千万": 1e7,
    "万亿": 1e12,
    "百": 1e2,
}
_SPELLED = "|".join(re.escape(each) for each in sorted(_SPELLINGS, key=len, reverse=True))
_DIGITS = re.compile(
    r"(?P<money>[$€£¥￥]\s?)?(?<![A-Za-z0-9_.])(?<![A-Za-z]-)(?P<sign>[-−])?(?P<digits>\d{1,3}(?:[,，’_]\d{3})+(?:\.\d+)?"
    r"|\d+(?:\.\d+)?)(?!\.\d)(?!\d)"
    rf"(?:\s?(?P<scale>万亿|百万|千万|thousand|million|billion|hundred|dozen|mn|bn|[千万亿百](?!字节|克|米))(?![A-Za-z]))?"
    rf"(?:[\s-]?(?P<unit>{_SPELLED})(?![A-Za-z0-9]))?",
    re.I,
)
_NUMBER_WORDS = {
    word: index
    for index, word in enumerate(
        ordered(
            """zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen
    seventeen eighteen nineteen"""
        )
    )
}
_TENS = {
    word: 10 * (index + 2)
    for index, word in enumerate(["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"])
}
_SMALL = "|".join([*_NUMBER_WORDS, *_TENS])
_WORDS = re.compile(
    rf"\b(?P<number>(?:{'|'.join(_TENS)})[- ](?:{'|'.join(list(_NUMBER_WORDS)[1:10])})"
    rf"|{_SMALL})\b(?:\s(?P<scale>hundred|thousand|million|billion|dozen)\b)?(?:[\s-](?P<unit>{_SPELLED})\b)?"
    r"|\b(?:a|one) (?P<dozen>dozen|hundred|thousand|million)\b|\b(?P<both>both)\b",
    re.I,
)
_ONE_IS_A_FIGURE = re.compile(r"(?:only|just|exactly|precisely)\s+$", re.I)
_HAN_DIGITS = {
    "零": 0,
    "〇": 0,
    "一": 1,
    "二": 2,
    "两": 2,
    "三": 3,
    "四": 4,
    "五": 5,
    "六": 6,
    "七": 7,
    "八": 8,
    "九": 9,
}
_HAN_SCALES = {"十": 10, "百": 100, "千": 1000}
_HAN = re.compile(
    rf"(?<!第)(?P<number>[零〇一二两三四五六七八九十百千万亿]+)(?P<measure>个|行|份|条|项|次|张|封|台|名|位|种|篇|页|本|只|家|处|字节|{_SPELLED})",
    re.I,
)
_HAN_ONE_IS_A_FIGURE = re.compile(r"(?:只有|仅|仅有|共|一共|总共)\s*$")
_TOKEN_PARTS = re.compile(
    r"\b\d{4}[-/年]\d{1,2}[-/月]\d{1,2}日?(?:[T ]\d{1,2}:\d{2}(?::\d{2})?(?:\.\d+)?(?:Z|[+-]\d{2}:?\d{2})?)?"
    r"|\b\d{1,2}:\d{2}(?::\d{2})?\b|(?<![\w.])v?\d+(?:\.\d+){2,}[\w.+-]*|(?<![\w.])v\d+\.\d+[\w.-]*"
    r"|\b(?=[0-9a-f]*[a-f])(?=[0-9a-f]*\d)[0-9a-f]{7,40}\b"
)


def literal_tokens(text: str) -> tuple[str, ...]:
    """Dates, clock times, versions and hashes: figures that are right only when they are the same."""
    return tuple(match[0].rstrip(".-+") for match in _TOKEN_PARTS.finditer(text[:TEXT_CHARACTERS]))


def without_tokens(text: str) -> str:
    """The text with its dates, times, versions and hashes blanked at equal length."""
    return _TOKEN_PARTS.sub(lambda match: " " * len(match[0]), text)


def quantities(text: str) -> tuple[Quantity, ...]:
    """Every figure of a text, digits and words, in order. Dates, versions and the like are not among them."""
    text = _LONG.sub(lambda match: " " * len(match[0]), without_tokens(text[:TEXT_CHARACTERS]))
    found = list(_durations(text))
    for spent in found:
        text = text[: spent.start] + " " * (spent.end - spent.start) + text[spent.end :]
    found += [*_in_digits(text), *_in_words(text), *_in_han(text)]
    return tuple(sorted(found, key=lambda each: each.start))


_LONG = re.compile(r"\w{101,}")
_DURATION = re.compile(
    r"(?<![\w.])(?:(\d+)\s?h(?:ours?)?\s?)?(\d+)\s?m(?:in(?:utes?)?)?\s?(?:and )?"
    r"(\d+(?:\.\d+)?)\s?s(?:ec(?:onds?)?)?(?![A-Za-z])",
    re.I,
)


def _durations(text: str) -> list[Quantity]:
    """`1m30.5s` is one figure, in seconds."""
    found: list[Quantity] = []
    for match in _DURATION.finditer(text):
        seconds = int(match[1] or 0) * 3600 + int(match[2]) * 60 + float(match[3])
        step = 10.0 ** -len(match[3].partition(".")[2])
        found.append(Quantity(seconds, step, "s", match[0], match.start(), match.end()))
    return found


def _in_digits(text: str) -> list[Quantity]:
    found: list[Quantity] = []
    for match in _DIGITS.finditer(text):
        after = text[match.end() : match.end() + 1]
        if (after.isalpha() and after.isascii()) or after == "_":
            continue
        digits = re.sub(r"[,，’_]", "", match["digits"])
        scale = _SCALES[match["scale"].lower()] if match["scale"] else 1.0
        decimals = len(digits.partition(".")[2])
        trailing = len(digits) - len(digits.rstrip("0")) if not decimals and scale > 1 else 0
        value = float(digits) * scale * (-1 if match["sign"] and _is_sign(text, match.start("sign")) else 1)
        unit = _unit(match["unit"] or "", text[match.start() : match.end()]) or (
            _unit(match["money"].strip(), "") if match["money"] else ""
        )
        found.append(
            Quantity(
                value, scale * 10.0 ** (trailing - decimals), unit, match[0].strip(), match.start(), match.end()
            )
        )
    return found


def _is_sign(text: str, at: int) -> bool:
    return at == 0 or text[at - 1] in " \t\n(=:,[|"


def _unit(spelling: str, whole: str) -> str:
    """Canonical unit; one-letter units only when they touch the figure (`4K`, not `4 k`)."""
    low = spelling.lower()
    if low in _AMBIGUOUS and re.search(r"\s\w+$", whole):
        return "" if low != "s" and low != "h" and low != "g" else low
    if spelling == "b":
        return "B"
    return _SPELLINGS.get(low, "")


def _in_words(text: str) -> list[Quantity]:
    found: list[Quantity] = []
    for match in _WORDS.finditer(text):
        if match["both"]:
            value = 2.0
        elif match["dozen"]:
            value = _SCALES[match["dozen"].lower()]
        else:
            parts = re.split(r"[- ]", match["number"].lower())
            value = float(sum(_NUMBER_WORDS.get(part, _TENS.get(part, 0)) for part in parts))
            value *= _SCALES[match["scale"].lower()] if match["scale"] else 1
        if value == 1 and not match["scale"] and not _ONE_IS_A_FIGURE.search(text[: match.start()]):
            continue
        unit = _SPELLINGS.get((match["unit"] or "").lower(), "")
        found.append(Quantity(value, 1, unit, match[0], match.start(), match.end(), worded=True))
    return found


def _in_han(text: str) -> list[Quantity]:
    found: list[Quantity] = []
    for match in _HAN.finditer(text):
        value = han_value(match["number"])
        if value is None or (value == 1 and not _HAN_ONE_IS_A_FIGURE.search(text[: match.start()])):
            continue
        unit = _SPELLINGS.get(match["measure"].lower(), "")
        found.append(Quantity(value, 1, unit, match[0], match.start(), match.end(), worded=True))
    return found


def han_value(numeral: str) -> float | None:
    """The value of a Chinese numeral up to 亿 (三百二十 → 320, 一万二千 → 12000); None when it is none."""
    total = section = digit = 0
    seen = False
    for char in numeral:
        if char in _HAN_DIGITS:
            digit, seen = _HAN_DIGITS[char], True
        elif char in _HAN_SCALES:
            section, digit, seen = section + (digit or 1) * _HAN_SCALES[char], 0, True
        elif seen:
            scale = 10_000 if char == "万" else 100_000_000
            total, section, digit = (total + section + digit) * scale, 0, 0
    return float(total + section + digit) if seen else None
