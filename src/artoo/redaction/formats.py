"""The formats of published secret prefixes, and the names of secrets in files and programs.

Each rule starts at a literal that is rare in other text, so a line without any such literal costs only one pass.
Issuers document these prefixes for scanners (GitHub, GitLab, Slack, Stripe and so on), and the rule set of gitleaks
collects them. No library offers them in a form that is fast enough for every logged line
(`docs/design/redaction.md`).
"""

from __future__ import annotations

import json
from typing import NamedTuple

# Backslashes without a quote belong to the escape that follows (of a line end or a letter). Groups are repeated
# greedily here instead of possessively, because Python before 3.11.5 matches possessive groups wrongly (gh-106052).
_QUOTE = rb"(?:\\{0,7}[\"'])?"
_GAP = rb"(?:[ \t]|\\{1,7}t){0,8}"
_SPACE = rb"[ \t]{1,8}+"
_BLANK = rb"(?:[ \t]|\\{1,7}[nrt]|[\r\n])"
# Headers may be lists of values. The list has to begin with a string, because code also uses brackets for indexes
# and type annotations.
_LIST = rb"(?:\[" + _BLANK + rb"{0,40}(?=\\{0,7}[\"']))?"
_NEW = rb"(?!\[redacted\])"
_NOT_IN_WORD = rb"(?<![A-Za-z0-9])"
_SCHEME = rb"(?:basic|bearer|token|digest|negotiate|apikey|aws4-hmac-sha256)[ \t]{1,8}+"
_TEXT = rb"[^\s\"'\\,;&|(){}<>\[\]]"
# Words that mean password in other languages.
_WORDS = ("mot de passe", "contraseña", "senha", "密码", "口令", "パスワード", "пароль")

_ESCAPED = tuple(json.dumps(word)[1:-1].encode() for word in _WORDS)
_ELSEWHERE = (
    *(word.encode() for word in _WORDS),
    *(escaped.replace(b"\\", rb"\\{1,7}") for escaped in _ESCAPED),
)
_NAME = (
    rb"(?:pass(?:word|wd|phrase|wort)[\w-]{0,32}|(?<=[_-])pass|pwd|(?<![A-Za-z0-9])pw|(?<=[_-])pw|secret[\w-]{0,32}"
    rb"|credentials?|kennwort|client-key-data|account(?=key)|sharedaccess(?=key)"
    rb"|(?:(?<=api)|(?<=api[_-])|(?<=access)|(?<=access[_-])|(?<=secret[_-])|(?<=private)|(?<=private[_-])"
    rb"|(?<=account))key[\w-]{0,32}"
    rb"|(?:(?<![A-Za-z0-9])|(?<=access)|(?<=auth)|(?<=refresh)|(?<=session))token"
    rb"|" + b"|".join(_ELSEWHERE) + rb")"
)
_COLON = rb"(?:=>|:=|[:=](?!=)|\xef\xbc\x9a)"
_WIDE_COLON = rb"\\{1,7}uff1a"
_ASSIGNMENT = rb"(?![\w-])(?:" + _QUOTE + _GAP + _COLON + rb"|" + _WIDE_COLON + rb")" + _GAP
_OPTION = (
    rb"(?:(?<=--)(?:pass(?:word|wd|phrase)?|pwd|secret|token)|(?<=--api-)key|(?<=--access-)key|(?<=--auth-)token)"
    + _SPACE
    + rb"(?!-)"
)
# If the value is a placeholder, as in code, templates and type annotations, it is not a secret.
_NO_CODE = (
    rb"(?!(?:None|null|true|false|str|string|int|bytes|bool|undefined|required|optional)(?![\w-])"
    rb"|os\.|process\.|\$|%|\*{3}|\\{0,7}[\"']?\[redacted\])"
)
# A quote before one of `,}]:` ends a string of JSON, of which the line itself consists. So no value follows it.
_VALUE = (
    rb"(?:\\{0,7}\"(?![,}\]:])(?P<double>[^\"\\\r\n]{1,4096})|\\{0,7}'(?P<single>[^\"'\\\r\n]{1,4096})"
    rb"|[|>][+-]?(?:[\r\n]|\\{1,7}[nr])[ \t]{1,32}(?P<block>[^\s\"\\][^\"\\\r\n]{0,4095})"
    rb"|(?P<value>(?![|>][+-]?(?:[\r\n]|\\))" + _TEXT + rb"{1,4096}+)(?!\())"
)
_HEADER = _QUOTE + _GAP + rb"[:=]" + _GAP + _LIST + _QUOTE + rb"(?:" + _SCHEME + rb"|(?!" + _SCHEME + rb"))"
# A name and a value that are neighbours in a list or a tuple. The value must have a scheme or a digit, because
# lists of words look the same.
_HEADER_OF_PAIR = (
    rb"\\{0,7}+[\"']" + _GAP + rb"," + _GAP + rb"\\{0,7}+[\"'](?:" + _SCHEME + rb"|(?=[^\s\"'\\,]{0,64}\d))"
)
_HEADER_VALUE = rb"(?P<value>(?!:)[^\s\"'\\,;(){}\[\]]{1,8192})"
_WITH_DIGIT = rb"(?=[^\s\"'\\|<]{0,64}\d)"


class Rule(NamedTuple):
    """A rule for finding secrets. Wherever one of `signs` (in lower case) occurs, `pattern` is matched, and its
    group is the secret.

    A `|` in a sign marks the place where the match begins. Lookbehinds check the text before this place."""

    signs: tuple[bytes, ...]
    pattern: bytes


def _rule(signs: str, pattern: bytes) -> Rule:
    return Rule(tuple(signs.encode().split()), pattern)


def _prefixed(signs: str, rest: bytes) -> Rule:
    """Return a rule for tokens that begin with one of the signs. Their case matters. `rest` matches the remainder
    of the token."""
    listed = signs.split()
    words = b"|".join(sign.encode().replace(b".", rb"\.").replace(b"/", rb"\/") for sign in listed)
    lower = tuple(dict.fromkeys(sign.lower().encode() for sign in listed))
    return Rule(lower, _NOT_IN_WORD + rb"(?P<value>(?-i:" + words + rb")" + rest + rb")")


# The signs contain enough of the surrounding text to exclude most lines, because `prompt_tokens`, `keyboard` and
# `passed` are common.
_NAME_SIGNS = (
    *(b"password", b"passwd", b"passphrase", b"passwort", b"kennwort", b"_|pass", b"-|pass", b"pwd", b"secret"),
    *(
        b"credential",
        b"client-key-data",
    ),
    *(b"api|key", b"api_|key", b"api-|key", b"access|key", b"access_|key", b"access-|key", b"account|key"),
    *(b"secret_|key", b"secret-|key", b"private|key", b"private_|key", b"private-|key"),
    *(b"pw" + after for after in (b":", b"=", b'"', b"\\", b" :", b" =")),
    *(b"token" + after for after in (b"\\", b'"', b"'", b" ", b"\t", b":", b"=")),
    *(word.encode() for word in _WORDS),
    *_ESCAPED,
)

RULES = (
    _rule(
        "-----begin",
        rb"(?P<value>-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----(?:[^\"\\]|\\[^\"])*?"
        rb"(?:-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----|(?=\\?\")|\Z))",
    ),
    _rule(
        "private-lines:",
        rb"private-lines: \d{1,4}"
        + _BLANK
        + rb"{1,4}(?P<value>(?:[A-Za-z0-9+/=]{4,80}(?:\\{1,7}[nr]|[\r\n]|\b)){1,400})",
    ),
    _rule("private-mac:", rb"private-mac:" + _GAP + rb"(?P<value>[0-9a-f]{16,128})"),
    _rule(
        "authorization", rb"authorization(?:" + _HEADER + rb"|" + _HEADER_OF_PAIR + rb")" + _NO_CODE + _HEADER_VALUE
    ),
    _rule(
        "cookie",
        rb"cookie"
        + _QUOTE
        + _GAP
        + rb":"
        + _GAP
        + _LIST
        + _QUOTE
        + _NEW
        + rb"(?=[^\"'\\\r\n]{0,200}=)(?P<value>[^\"'\\\r\n]{1,8192})",
    ),
    _rule(
        "sessid sessionid connect.sid",
        rb"(?:sess(?:ion)?id|connect\.sid)=" + _NEW + rb"(?P<value>[\w.%+/-]{6,512})",
    ),
    _rule(
        "bearer",
        _NOT_IN_WORD + rb"bearer" + _SPACE + rb"(?=[\w.~+/=-]{0,512}[0-9._~+/])(?P<value>[\w.~+/-]{8,8192}={0,2})",
    ),
    # Tokens that have a prefix of their issuer.
    _prefixed("sk- gho_ ghp_ ghr_ ghs_ ghu_ github_pat_ glpat- hf_ pypi- gsk_", rb"[\w-]{16,512}"),
    _prefixed("npm_", rb"[A-Za-z0-9]{16,64}(?![\w-])"),
    _prefixed("gldt- glrt- glcbt- glptt- glft- glimt- glagent- glsoat- gloas-", rb"[\w-]{16,128}"),
    _prefixed(
        "dckr_pat_ dckr_oat_ dop_v1_ doo_v1_ dor_v1_ shpat_ shpss_ shpca_ shppa_ whsec_ rubygems_",
        rb"[\w-]{16,128}",
    ),
    _prefixed(
        "sntrys_ sntryu_ lin_api_ figd_ rdme_ xkeysib- xsmtpsib- nvapi- pplx- xai- tskey- sgp_ sbp_",
        rb"[\w-]{16,256}",
    ),
    _prefixed(
        "PMAK- NRAK- CFPAT- GOCSPX- ATATT3 ATCTT3 ATBB AKCp LTAI tfp_ r8_ fo1_ ntn_ glsa_ glc_ pul-",
        rb"[\w=+/-]{16,512}",
    ),
    _prefixed(
        "sq0atp- sq0csp- EAAA bkua_ phx_ duffel_live_ shippo_live_ sb_secret_ ops_eyJ CLOJARS_ oy2",
        rb"[\w-]{20,512}",
    ),
    _prefixed("dt0c01. dp.pt. dp.st. hvs. hvb. hvr. ya29. SG.", rb"[\w.-]{16,512}"),
    _prefixed("1//0", rb"[\w-]{20,256}"),
    _prefixed("fm2_ fm1_ fm1r_", rb"[\w+/=-]{32,1024}"),
    _prefixed("dapi key-", rb"[0-9a-f]{32}(?![\w-])"),
    _prefixed("AGE-SECRET-KEY-1", rb"[A-Z0-9]{20,80}"),
    _prefixed("0x", rb"[0-9a-fA-F]{64}(?![0-9a-fA-F])"),
    _rule("k_live_ k_test_", rb"(?<=[rs])(?P<value>k_(?:live|test)_\w{16,512})"),
    _rule("xox", _NOT_IN_WORD + rb"(?P<value>xox[abceoprs]-[A-Za-z0-9-]{10,256})"),
    _rule("xapp-", _NOT_IN_WORD + rb"(?P<value>xapp-\d-[A-Za-z0-9-]{10,256})"),
    _rule("akia asia aiza", rb"(?P<value>(?:AKIA|ASIA)[0-9A-Z]{16}(?![\w-])|AIza[\w-]{30,64})"),
    _rule("eyj", _NOT_IN_WORD + rb"(?P<value>eyJ[\w-]{8,4096}+\.[\w-]{8,8192}+\.[\w-]{4,4096})"),
    _rule("ls0tls1crudjti", rb"(?P<value>(?-i:LS0tLS1CRUdJTi)(?!BDRVJU|BQVUJM)[A-Za-z0-9+/=]{4,65536})"),
    _rule("hooks.slack.com/", rb"hooks\.slack\.com/[a-z]{1,20}/(?P<value>[\w/-]{8,200})"),
    _rule("/api/webhooks/", rb"/api/webhooks/\d{5,30}/(?P<value>[\w-]{20,200})"),
    _rule(":|aa", rb"(?<=\d{8}:)(?P<value>(?-i:AA)[\w-]{30,40})(?![\w-])"),
    _rule("sig=", rb"(?<=[?&])sig=(?P<value>[\w%+/=-]{8,256})"),
    _rule(".atlasv1.", rb"\.atlasv1\.(?P<value>[\w-]{20,200})"),
    # URLs with a user name and a password, or with a token instead of both.
    _rule("://", rb"://[^\s/:@\"'\\]{0,256}+:" + _NEW + rb"(?P<value>[^\s/@\"'\\]{1,512}+)@"),
    _rule("http://|", rb"(?<=http://)(?=[^\s/@:\"'\\]{0,64}\d)(?P<value>[^\s/@:\"'\\]{12,512})@"),
    _rule("https://|", rb"(?<=https://)(?=[^\s/@:\"'\\]{0,64}\d)(?P<value>[^\s/@:\"'\\]{12,512})@"),
    # Passwords in the form in which systems store them.
    _rule(
        "$apr1$ $argon2 $pbkdf2 $scrypt$ $gy$", rb"(?P<value>\$(?:apr1|argon2|pbkdf2|scrypt|gy)[\w$./+=,-]{8,512})"
    ),
    _rule("$1$ $5$ $6$ $y$ $2a$ $2b$ $2y$", rb"(?P<value>\$(?:[156y]|2[aby])\$[\w./=,$-]{8,256})"),
    _rule("{ssha {sha} {sha2", rb"(?P<value>\{S?SHA\d{0,3}\}[\w+/=]{16,128})"),
    # Programs that take a password among their arguments.
    _rule(
        "mysql mariadb",
        rb"(?:mysql|mariadb)\w{0,12}(?:"
        + _SPACE
        + rb"[^\s\"'\\;|&]{1,200}){0,20}?"
        + _SPACE
        + rb"-p(?P<value>(?!\[redacted\])"
        + _TEXT
        + rb"{1,256})",
    ),
    _rule(
        "curl",
        rb"curl(?:"
        + _SPACE
        + rb"[^\s;|&]{1,400}){0,30}?"
        + _SPACE
        + rb"(?:-u|-U|--user|--proxy-user)(?:[ =]{0,2})"
        + _QUOTE
        + rb"[^\s:\"'\\]{0,128}:"
        + _NEW
        + rb"(?P<value>"
        + _TEXT
        + rb"{1,256})",
    ),
    _rule("sshpass", rb"sshpass" + _SPACE + rb"-p" + _GAP + _QUOTE + _NEW + rb"(?P<value>" + _TEXT + rb"{1,256})"),
    _rule(
        "login",
        rb"login"
        + _BLANK
        + rb"{1,8}[^\s\"\\]{1,128}"
        + _BLANK
        + rb"{1,8}password"
        + _BLANK
        + rb"{1,8}"
        + _NEW
        + rb"(?P<value>"
        + _TEXT
        + rb"{1,256})",
    ),
    # Words that name a secret.
    _rule(
        'pin: pin= pin" pin\\',
        rb"(?<![A-Za-z0-9_])pin" + _QUOTE + _GAP + rb"[:=]" + _GAP + _QUOTE + rb"(?P<value>\d{4,8})(?!\d)",
    ),
    _rule(
        "seed mnemonic",
        rb"(?:seed(?: phrase)?|mnemonic)"
        + _QUOTE
        + _GAP
        + rb"[:=]"
        + _GAP
        + _QUOTE
        + rb"(?P<value>[a-z]{3,8}(?:[ ,]{1,2}[a-z]{3,8}){3,23})(?![\w])",
    ),
    Rule(
        (b"password is ", b"passwd is ", b"passphrase is "),
        rb"(?:password|passwd|passphrase)"
        + _SPACE
        + rb"is"
        + _SPACE
        + _QUOTE
        + _NEW
        + _WITH_DIGIT
        + rb"(?P<value>"
        + _TEXT
        + rb"{4,256})",
    ),
    Rule(
        (b"password ", b"passwd ", b"secret ", b"token "),
        rb"(?:password|passwd|secret|token)[\w-]{0,16}"
        + _GAP
        + rb"\|"
        + _GAP
        + _NEW
        + _WITH_DIGIT
        + rb"(?P<value>"
        + _TEXT
        + rb"{4,256})",
    ),
    _rule(
        "password> passwd> secret> token> apikey>",
        rb"(?:password|passwd|secret|token|apikey)>" + _NEW + rb"(?P<value>[^<>\s\"\\][^<>\r\n\"\\]{0,1024})</",
    ),
    Rule(_NAME_SIGNS, rb"(?:" + _NAME + _ASSIGNMENT + rb"|" + _OPTION + rb")" + _LIST + _NO_CODE + _VALUE),
)
