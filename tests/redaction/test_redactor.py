"""Secrets are taken out, everything else is left alone, and a line of JSON stays one."""

from __future__ import annotations

import base64
import json
from typing import Any, cast

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from artoo.redaction import MARK, Redactor

WITH_SECRET = {
    "password=hunter2": "password=[redacted]",
    "PASSWORD: hunter2, and more": "PASSWORD: [redacted], and more",
    "password='two words' x": "password='[redacted]' x",
    '{"api_key": "abc123def"}': '{"api_key": "[redacted]"}',
    r"{\"api_key\": \"abc123def\"}": r"{\"api_key\": \"[redacted]\"}",
    "export OPENAI_API_KEY=abc": "export OPENAI_API_KEY=[redacted]",
    "aws_secret_access_key = wJalrXUtnFEMI/K7MDENG": "aws_secret_access_key = [redacted]",
    "MY_TOKEN=xyz123": "MY_TOKEN=[redacted]",
    "accessToken: 'abcdef'": "accessToken: '[redacted]'",
    "secret_key => abc": "secret_key => [redacted]",
    "PGPASSWORD=abc": "PGPASSWORD=[redacted]",
    "db_pass=abc": "db_pass=[redacted]",
    "Authorization: Bearer abc.def-123": "Authorization: Bearer [redacted]",
    "authorization: Basic dXNlcjpwYXNz": "authorization: Basic [redacted]",
    "Proxy-Authorization: abcdef": "Proxy-Authorization: [redacted]",
    "curl -H 'Authorization: token abcdef123' u": "curl -H 'Authorization: token [redacted]' u",
    '"Authorization": "Bearer abc"': '"Authorization": "Bearer [redacted]"',
    "Cookie: sid=abc; x=y": "Cookie: [redacted]",
    "bearer abcdef1234567890": "bearer [redacted]",
    "mysql --password hunter2 -u root": "mysql --password [redacted] -u root",
    "tool --api-key abcdef x": "tool --api-key [redacted] x",
    "https://user:pa55@host/x": "https://user:[redacted]@host/x",
    "key sk-proj-abcdefghijklmnop1234 end": "key [redacted] end",
    "ghp_abcdefghijklmnopqrstuvwxyz0123456789": "[redacted]",
    "sk_live_abcdefghijklmnop1234": "s[redacted]",
    "xoxb-123456789012-abcdef": "[redacted]",
    "AKIAABCDEFGHIJKLMNOP": "[redacted]",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.abcdefgh": "[redacted]",
    "a\n-----BEGIN RSA PRIVATE KEY-----\nabc\n-----END RSA PRIVATE KEY-----\nb": "a\n[redacted]\nb",
    "-----BEGIN PRIVATE KEY-----\nabc cut": "[redacted]",
}
WITHOUT_SECRET = [
    "the password is required",
    "def login(password: str) -> None",
    "password = getpass.getpass()",
    "api_key=os.environ['X']",
    "API_KEY=$KEY",
    "password=None",
    "prompt_tokens=512 tokens: 12, token_count=5",
    "token == other",
    "the bearer certificates of good news",
    "keyboard: us, monkey=3, compass: north",
    "risk-assessment-of-something-long-here",
    "https://host/path@rev",
    "-----BEGIN CERTIFICATE-----",
    "密码在哪里?",
]


def in_json(text: str) -> bytes:
    return json.dumps({"before": 1, "text": text, "after": "x"}, ensure_ascii=False).encode()


@pytest.mark.parametrize(("text", "redacted"), WITH_SECRET.items())
def test_a_secret_is_replaced_and_its_name_kept(text: str, redacted: str) -> None:
    """Each known shape, in plain text and inside a line of JSON."""
    redactor = Redactor()
    assert redactor.text(text) == redacted
    line = json.loads(redactor.line(in_json(text)))
    assert line == {"before": 1, "text": redacted, "after": "x"}


@pytest.mark.parametrize("text", WITHOUT_SECRET)
def test_what_is_no_secret_is_left_alone(text: str) -> None:
    """Code, prose and figures come through unchanged, as the same object."""
    line = in_json(text)
    assert Redactor().line(line) is line


def test_known_values_are_replaced_wherever_they_are() -> None:
    """Exact values, also in their escaped form; very short ones are ignored."""
    redactor = Redactor(['my "own" value', "ab"])
    assert redactor.text('x my "own" value ab') == f"x {MARK} ab"
    assert json.loads(redactor.line(in_json('my "own" value')))["text"] == MARK


def test_a_known_value_is_found_across_an_escaped_line_end_before_any_letter() -> None:
    """JSON inside JSON doubles the backslash of a line end: the letter behind `n` belongs to the value."""
    line = rb'{"text": "{\"key\": \"abcdef\\nrghijklmnop\"}"}'
    assert b"ghij" not in Redactor(["abcdefrghijklmnop"]).line(line)


def test_several_secrets_in_one_line() -> None:
    """Overlapping shapes are replaced once."""
    text = "password=ghp_abcdefghijklmnopqrstuvwxyz0123456789 and token=abc"
    assert Redactor().text(text) == "password=[redacted] and token=[redacted]"


PIECES = st.sampled_from(
    [
        *WITH_SECRET,
        *WITHOUT_SECRET,
        *('"', "'", "\\", "\n", "\t", "\r", " ", "=", ":", ",", "[", "{", "}", "]", "\x1b", "\\n", "\\u00e9"),
        *(
            "password",
            "Bearer ",
            "Authorization:",
            "authorization,",
            "Cookie:",
            "a=b",
            "PIN:",
            "sshpass -p ",
            "seed:",
        ),
        *('{"pin":1234}', '{"token":123456,"x":[1,null]}', '{"Authorization":["Basic dXNlcjpw"]}', '"password":"'),
        *("é", "账", "🙂", "\u200b", "abc=", "-----END RSA PRIVATE KEY-----", "https://u:", MARK, "1234", "n0"),
        *("hunter2-hunter2", "hunter2-\nhunter2", "68756e746572322d68756e74657232", "n0abcdefgh", "dé\\"),
    ]
)
KNOWN = ["hunter2-hunter2", "n0abcdefgh", 'ab"c\\dé\\']


@settings(max_examples=300, deadline=None, database=None)
@given(st.lists(PIECES | st.text(max_size=6), max_size=6).map("".join))
def test_redaction_is_idempotent_and_keeps_json_whole(text: str) -> None:
    """Whatever stands beside a secret: a second pass changes nothing, and a line of JSON stays readable."""
    redactor = Redactor(KNOWN)
    once = redactor.text(text)
    assert redactor.text(once) == once
    line = redactor.line(in_json(text))
    assert set(json.loads(line)) == {"before", "text", "after"}
    assert redactor.line(line) == line


ENDINGS = ["API_KEY=", "password: ", "--password ", "token=", "secret", 'pass="', "https://u:", "cookie: "]
NAMES = [*ENDINGS, "token", "pin", "Authorization", "cookie", "k"]
VALUES = st.recursive(
    st.sampled_from([*ENDINGS, "x", "a=b", ""])
    | st.lists(PIECES, max_size=4).map("".join)
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False)
    | st.booleans()
    | st.none(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner),
    max_leaves=8,
)
WRITTEN = [
    {"ensure_ascii": ascii_only, "separators": separators, "indent": indent}
    for ascii_only in (False, True)
    for separators, indent in (((",", ":"), None), ((", ", ": "), None), ((",", ": "), 2))
]


def shape(value: Any) -> Any:
    """A JSON value without what stands in its strings and numbers; whether something is true or missing stays."""
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value)
        return {key[:3]: shape(item) for key, item in fields.items()}
    if isinstance(value, list):
        return [shape(item) for item in cast("list[Any]", value)]
    return value if value is None or isinstance(value, bool) else ""


@settings(max_examples=400, deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow])
@given(VALUES, st.sampled_from(WRITTEN))
def test_a_line_keeps_its_shape_and_what_is_no_secret(value: object, written: dict[str, Any]) -> None:
    """However it is written, whatever stands in it: each field is still there, and other fields are untouched."""
    others = {"entity": "path:API_KEY=", "attention": 1.5, "count": 12_345, "words": ["it", "stays"]}
    line = json.dumps({"v": value, **others, "token": 12_345}, **written).encode()
    redactor = Redactor(KNOWN)
    redacted = redactor.line(line)
    assert shape(json.loads(redacted)) == shape(json.loads(line))
    assert json.loads(redacted) | others == json.loads(redacted)
    assert redactor.line(redacted) == redacted


@settings(max_examples=400, deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow])
@given(VALUES, st.sampled_from(WRITTEN))
def test_json_in_a_string_of_a_line_keeps_its_shape(value: object, written: dict[str, Any]) -> None:
    """A model's answer is logged so, and what a program printed."""
    line = orjson.dumps({"answer": json.dumps({"v": value, "token": 12_345}, **written), "next": 1})
    redacted = orjson.loads(Redactor(KNOWN).line(line))
    assert shape(json.loads(redacted["answer"])) == shape({"v": value, "token": ""})


ORDINARY = [
    "authentication and authorization,\nwhich is",
    "Authorization:\nUse a token.",
    "Authorization: \\",
    "the password is \n12345 really",
    "password:\nfoo",
    "Cookie:\nfoo=bar",
    "sshpass -p \nls",
    'headers={"Authorization":[]}',
    '"authorization":null, "Authorization":{"type":"apiKey"}',
    '["authorization","logging","metrics"]',
    'Authorization: $TOKEN, "Authorization": None',
    '{"secret": 3, "k": 1}',
]


@pytest.mark.parametrize("text", ORDINARY)
def test_words_beside_a_name_that_are_no_value_stay(text: str) -> None:
    """What begins the next line, a list or nothing is no value."""
    for written in (in_json(text), orjson.dumps({"a": json.dumps([text])}), orjson.dumps([text, "x"])):
        assert Redactor().line(written) is written


NAMED = {
    '{"pin":1234}': '{"pin":"[redacted]"}',
    '{"token": 123456, "x": 1}': '{"token": "[redacted]", "x": 1}',
    '{"authorization":12345}': '{"authorization":"[redacted]"}',
    '{"Authorization":["Basic dXNlcjpw"]}': '{"Authorization":["Basic [redacted]"]}',
    '{"Cookie":[\n  "sid=abc"]}': '{"Cookie":[\n  "[redacted]"]}',
    "{'password': ['hunter2']}": "{'password': ['[redacted]']}",
    "PIN:\t4711": "PIN:\t[redacted]",
    "password:\thunter2": "password:\t[redacted]",
}


@pytest.mark.parametrize(("text", "redacted"), NAMED.items())
def test_a_number_or_a_list_of_that_name_is_redacted_in_json_and_in_its_strings(text: str, redacted: str) -> None:
    """JSON stays JSON: a word that stands for a number has quotes, as deep as it is."""
    redactor = Redactor()
    assert redactor.text(text) == redacted
    assert json.loads(redactor.line(in_json(text)))["text"] == redacted
    twice = json.loads(redactor.line(in_json(json.dumps([text]))))["text"]
    assert json.loads(twice) == [redacted]


def test_a_known_value_that_is_a_number_of_json_becomes_a_nought() -> None:
    """The field may be of any message, and must still be read as a number."""
    line = b'{"total":91234567,"at":"1234567","part":12345}'
    assert Redactor(["1234567"]).line(line) == b'{"total":0,"at":"[redacted]","part":12345}'


@pytest.mark.parametrize("secret", ["n0abcdefgh", "u00e9abcdefgh", '"quoted-value', "ends-with\\"])
def test_a_known_value_does_not_cut_an_escape(secret: str) -> None:
    """Its first or last letter may be one of an escape: the line end, letter or quote stays."""
    for text in ("a\n0abcdefgh", "a\u00e9abcdefgh", f'a "{secret}" {secret}"b', secret):
        line = json.dumps({"text": text, "z": 1}).encode()
        redacted = json.loads(Redactor([secret]).line(line))
        assert set(redacted) == {"text", "z"} and secret[1:-1] not in redacted["text"]


def test_a_long_value_is_not_cut_within_a_letter() -> None:
    """Of a value that is longer than any secret, what is taken out ends with a whole letter."""
    assert Redactor().text("password=x" + "é" * 3_000).startswith("password=[redacted]é")


@pytest.mark.parametrize(
    "piece",
    ["a", "password", "password= ", "eyJ", "eyJaaaaaaaaaaa.", "://a:", "sk-", "bearer ", 'token="', "-----BEGIN "],
)
def test_hostile_text_is_redacted_in_one_pass(piece: str) -> None:
    """Text made to confuse the patterns is read to its end (a quadratic pattern would not finish this test)."""
    redactor = Redactor()
    text = piece * (400_000 // len(piece))
    assert redactor.text(redactor.text(text)) == redactor.text(text)


@pytest.mark.parametrize("offset", range(3))
def test_a_known_value_in_hex_or_base64_is_found_across_line_ends(offset: int) -> None:
    """As `xxd -p`, `od -An -tx1` and `base64` write it, in plain text and in a JSON string."""
    secret = "sk-Zq81mPx0Lw7vTt3nB5cYdR2e"
    raw = b"x" * offset + secret.encode() + b"tail"
    pairs = raw.hex(" ").split()
    broken = (
        "\n".join(raw.hex()[at : at + 20] for at in range(0, len(raw) * 2, 20)),
        "\n".join(" " + " ".join(pairs[at : at + 16]) for at in range(0, len(pairs), 16)),
        "\n".join(base64.b64encode(raw).decode()[at : at + 19] for at in range(0, 44, 19)),
    )
    for text in broken:
        for written in (text, json.dumps({"output": text})):
            assert MARK in Redactor([secret]).known(written.encode()).decode(), written


SECRETS = ["sk-Zq81mPx0Lw7vTt3nB5cYdR2e", "Tr0ub4dor&3x", "ghp_16C7e42F292c6912E7710c838347Ae178B4a"]


def written_as(text: str) -> list[str]:
    """Return the text as it is, in JSON, and in JSON that is in JSON: a line of the log holds an output so."""
    return [text, json.dumps({"output": text}), json.dumps({"output": json.dumps([text, 7])}, ensure_ascii=False)]


def left_of(secret: str, text: str) -> int:
    """The longest run of its letters that a reader can still put together, blanks and what nobody sees aside."""
    whole = "".join(one for one in text if one.isascii() and one.isalnum()).lower()
    sought = "".join(one for one in secret if one.isascii() and one.isalnum()).lower()
    spans = ((start, end) for start in range(len(sought)) for end in range(start + 1, len(sought) + 1))
    return max((end - start for start, end in spans if sought[start:end] in whole), default=0)


@pytest.mark.parametrize("secret", SECRETS)
@pytest.mark.parametrize(
    "between", ["\u200b", "\ufeff", "\u00ad", "\u2060", "\U000e0001", "\u00a0", "\u3000", "\ufe0f"]
)
def test_a_known_value_is_found_through_what_nobody_sees(secret: str, between: str) -> None:
    """Characters without width, and blanks that are not ASCII's, between its letters."""
    for text in written_as(f"key: {between.join(secret)}, end"):
        redacted = Redactor([secret]).known(text.encode()).decode()
        assert MARK in redacted and "end" in redacted and left_of(secret, redacted) < 4, redacted
        if text.startswith("{"):
            json.loads(redacted)


@pytest.mark.parametrize(
    "piece",
    ["sk-Zq81m ", "736b 2d5a ", "dR2esk-Z", "c2stWnE4MW1Q\n7 "],
)
def test_pieces_of_a_known_value_without_end_are_read_in_linear_time(piece: str) -> None:
    """A quadratic search would not finish this test."""
    text = (piece * (200_000 // len(piece))).encode()
    redactor = Redactor(["sk-Zq81mPx0Lw7vTt3nB5cYdR2e"])
    assert redactor.known(redactor.known(text)) == redactor.known(text)


@pytest.mark.parametrize("line_end", ["\n", "\\n", "\\\\r\\\\n"])
def test_the_lines_that_are_left_of_a_key_are_redacted_to_the_first_of_them(line_end: str) -> None:
    """Whatever the line ends look like, and what stands before the first line stays."""
    lines = ["QUJD" * 16, "+/+/" * 10, "abc="]
    text = f"top: {line_end.join(lines)}{line_end}-----END EC PRIVATE KEY-----"
    assert Redactor().text(text) == "top: [redacted]-----END EC PRIVATE KEY-----"


def test_base64_beside_a_key_does_not_hold_up_the_log() -> None:
    """A megabyte of it is read to its end: no search begins at each of its letters."""
    line = b'"' + b"\\n".join([b"QUJD" * 19] * 13_000) + b' -----END CERTIFICATE-----, no PRIVATE KEY-----"'
    assert Redactor().line(line) is line
