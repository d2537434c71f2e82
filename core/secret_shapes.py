"""What secrets look like: one rule per shape, each tried only on text that holds one of its anchors.

Rule 1: no expression looks across a line end, so a text may be judged line by line.
Rule 2: every expression is linear. It begins at a literal, its repetitions are bounded or cannot fail after
they have run, and a run of characters is entered at one place only.
Rule 3: only the secret itself is replaced (the group `secret`, else the whole match), never a mark of ours.

Shapes follow the vendors' documentation and the rules of gitleaks
(https://github.com/gitleaks/gitleaks/blob/master/config/gitleaks.toml).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

PRIVATE_KEY = "private_key"
KNOWN = "known_secret"

_NEW = r"(?!\[redacted:)"
_START = r"(?<![A-Za-z0-9])"
_END = r"(?![A-Za-z0-9])"
_DIGIT = r"(?=[A-Za-z_.~+/=-]{0,200}[0-9])"
_GAP = r"[ \t]{0,8}"
_QUOTE = r"\\{0,3}[\"']"


@dataclass(frozen=True, slots=True)
class Shape:
    """One kind of secret. `anchors` are lower case; a text without any of them cannot match."""

    kind: str
    anchors: tuple[str, ...]
    pattern: re.Pattern[str]


def _shape(kind: str, anchors: str, pattern: str, flags: int = 0) -> Shape:
    return Shape(kind, tuple(anchors.split()), re.compile(pattern, flags))


# The value of an assignment: a quoted text, a quoted text inside a quoted one, or a bare word.
_VALUE = (
    rf"(?:\"{_NEW}(?P<double>(?:[^\"\\\n]|\\[^\n])+)\"|'{_NEW}(?P<single>(?:[^'\\\n]|\\[^\n])+)'"
    rf"|\\{{1,3}}[\"']{_NEW}(?P<inner>[^\"'\\\n]+)|[\"']?{_NEW}(?P<bare>%s))"
)
_PASSWORD = r"(?:pass(?:word|wd|phrase|code)|pwd|passw)"
_TOKEN = (
    r"(?:secrets?|tokens?(?=[\"'\s=])|api[_-]?keys?|access[_-]?keys?(?:[_-]?ids?)?|secret[_-]?keys?|private[_-]?keys?"
    r"|account[_-]?keys?|signing[_-]?keys?|encryption[_-]?keys?|shared[_-]?access[_-]?(?:key|signature)"
    r"|credentials?|client[_-]?secrets?|auth[_-]?keys?|token|x-amz-signature|x-amz-security-token)"
)
_BARE = r"[^\s\"'&;,<>(){}\\]"

SHAPES: tuple[Shape, ...] = (
    _shape("aws_key", "akia asia abia acca", rf"{_START}(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{{16}}{_END}"),
    _shape(
        "aws_secret",
        "aws",
        rf"aws_?(?:secret_?)?(?:access_?)?key[\"']?{_GAP}[:=]{{1,2}}{_GAP}[\"']?(?P<secret>[A-Za-z0-9/+]{{40}})(?![A-Za-z0-9/+])",
        re.IGNORECASE,
    ),
    _shape(
        "github_token",
        "ghp_ gho_ ghu_ ghs_ ghr_ github_pat_",
        rf"{_START}(?:gh[pousr]_[A-Za-z0-9]{{36,}}|github_pat_[A-Za-z0-9_]{{22,}})",
    ),
    _shape(
        "gitlab_token",
        "glpat- gldt- glrt- glptt- glsoat- glcbt- glft- glimt- glagent- gloas- glffct-",
        rf"{_START}gl(?:pat|dt|rt|ptt|soat|cbt|ft|imt|agent|oas|ffct)-[A-Za-z0-9_.-]{{16,}}",
    ),
    _shape(
        "slack_token",
        "xox xapp- hooks.slack.com",
        rf"{_START}(?:xox[a-z](?:\.xox[a-z])?-[A-Za-z0-9-]{{10,}}|xapp-[0-9]-[A-Za-z0-9-]{{10,}})"
        r"|hooks\.slack\.com/(?:services|workflows|triggers)/(?P<secret>[A-Za-z0-9/_+-]{16,})",
        re.IGNORECASE,
    ),
    _shape("anthropic_key", "sk-ant-", rf"{_START}sk-ant-[A-Za-z0-9_-]{{16,}}"),
    _shape("openai_key", "sk-", rf"{_START}sk-(?!ant-)(?=[A-Za-z_-]{{0,200}}[0-9])[A-Za-z0-9_-]{{20,}}"),
    _shape(
        "google_key",
        "aiza ya29. gocspx-",
        rf"{_START}(?:AIza[A-Za-z0-9_-]{{35}}|ya29\.[A-Za-z0-9_-]{{20,}}|GOCSPX-[A-Za-z0-9_-]{{20,}})",
    ),
    _shape(
        "stripe_key",
        "k_live_ k_test_ whsec_",
        rf"{_START}(?:[prs]k_(?:live|test)_[A-Za-z0-9]{{10,}}|whsec_[A-Za-z0-9+/=]{{24,}})",
    ),
    _shape(
        "service_token",
        "npm_ pypi-age sg. dop_v1_ hvs. glsa_ shpat_ hf_ dapi age-secret-key-1",
        rf"{_START}(?:npm_[A-Za-z0-9]{{36}}|pypi-AgE[A-Za-z0-9_-]{{20,}}|SG\.[A-Za-z0-9_-]{{16,64}}\.[A-Za-z0-9_-]{{16,}}"
        r"|dop_v1_[a-f0-9]{64}|hvs\.[A-Za-z0-9_-]{24,}|glsa_[A-Za-z0-9]{32}_[a-f0-9]{8}|shpat_[a-f0-9]{32}"
        rf"|hf_[A-Za-z]{{34}}|dapi[a-f0-9]{{32}}|AGE-SECRET-KEY-1[A-Z0-9]{{58}}){_END}",
    ),
    _shape(
        "jwt",
        "eyj",
        r"(?<![A-Za-z0-9_-])eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*){1,3}",
    ),
    _shape(
        "authorization",
        "authorization",
        rf"authorization(?:{_QUOTE})?{_GAP}[:=]{_GAP}(?:{_QUOTE})?"
        rf"(?:(?:bearer|basic|token|digest|apikey|negotiate)[ \t]+{_NEW}(?P<secret>[^\s\"'\\,]+)"
        rf"|{_NEW}(?P<bare>{_DIGIT}[A-Za-z0-9._~+/=-]{{16,}}))",
        re.IGNORECASE,
    ),
    _shape(
        "bearer",
        "bearer",
        rf"{_START}bearer[ \t]+{_NEW}(?P<secret>{_DIGIT}[A-Za-z0-9._~+/=-]{{16,}})",
        re.IGNORECASE,
    ),
    _shape(
        "password",
        "pass pwd",
        rf"{_PASSWORD}(?:{_QUOTE})?{_GAP}(?:=>|:=|[:=]){_GAP}" + _VALUE.replace("%s", rf"{_BARE}+"),
        re.IGNORECASE,
    ),
    _shape(
        "secret",
        "secret token key credential x-amz-",
        rf"{_TOKEN}(?:(?:{_QUOTE}){_GAP}(?:=>|[:=])|=|{_GAP}:=|[ \t]{{1,8}}=){_GAP}"
        + _VALUE.replace("%s", rf"{_BARE}{{6,}}"),
        re.IGNORECASE,
    ),
    _shape(
        "secret",
        "secret token key credential",
        rf"{_TOKEN}{_GAP}:{_GAP}"
        + _VALUE.replace("%s", rf"(?:(?=[^\s0-9]{{0,200}}[0-9]){_BARE}{{8,}}|{_BARE}{{20,}})"),
        re.IGNORECASE,
    ),
    _shape(
        "url_password",
        "://",
        rf"://[^\s/:@\"'\[<>]{{0,128}}:{_NEW}(?P<secret>[^\s/\"'<>]{{1,256}})@(?=[A-Za-z0-9\[])"
        rf"|://(?P<bare>[A-Za-z0-9_.-]{{20,256}})@(?=[A-Za-z0-9\[])",
    ),
)

MARKS: frozenset[str] = frozenset(
    f"[redacted:{kind}]" for kind in (*(s.kind for s in SHAPES), PRIVATE_KEY, KNOWN)
)


def mark(kind: str) -> str:
    """What stands where a secret was."""
    return f"[redacted:{kind}]"


def replaced(shape: Shape, text: str) -> str:
    """The text with every secret of this shape replaced by its mark."""
    sign = mark(shape.kind)

    def put(found: re.Match[str]) -> str:
        start, end = next(
            (found.span(name) for name, value in found.groupdict().items() if value is not None), found.span()
        )
        whole = found.group()
        return whole[: start - found.start()] + sign + whole[end - found.start() :]

    return shape.pattern.sub(put, text)
