"""Model Markdown → Slack's mrkdwn that cannot ping anybody, unfurl, or load a picture. Pure.

We write mrkdwn ourselves instead of sending a `markdown` block, because Slack expands such a block by its own
rules: images load, bare URLs become links, and it may grow past fifty blocks
(https://github.com/archestra-ai/archestra/pull/4980).

Rule 1: `&`, `<` and `>` of the model are escaped; the only `<…>` that leaves here links to an allowed host.
Rule 2: any other URL is shown as code, so that a click is a choice and no preview is fetched.
Rule 3: "@channel" and its like are broken by a character that nobody sees.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from urllib.parse import urlsplit

from bot.slack.tables import tables
from bot.words.fences import pieces
from bot.words.speech import NOT_SHOWN

Hosts = frozenset[str]

CODE_SPAN = r"(?<!`)(?P<ticks>`{1,3})(?!`)(?P<code>[^\n]{0,500}?[^`\n])(?P=ticks)(?!`)"
LINK = (
    r"(?P<image>!?)\[(?P<label>[^\[\]\n]{0,300})\]"
    r"\(\s*<?(?P<url>[^\s()<>]+(?:\([^\s()<>]*\)[^\s()<>]*)*)>?[^()\n]{0,200}\)"
)
BARE_URL = r"<?(?P<bare>(?:https?|ftp)://[^\s<>|`\"]+|mailto:[^\s<>|`\"]+)>?"
TOKEN = re.compile(f"{CODE_SPAN}|{LINK}|{BARE_URL}", re.IGNORECASE)
TRAILING = re.compile(r"[.,;:!?)\]}*_~']+$")
BROADCAST = re.compile(r"@(?=(?:channel|here|everyone|group)\b)", re.IGNORECASE)
UNSEEN = "\u2060"  # word joiner
BARE_TICK = "ˋ"  # looks like a backtick and opens no code
LONGEST_LINK = 1_000
HEADING = re.compile(r"^[ \t]{0,3}#{1,6}[ \t]+(.*?)[ \t]*#*$")
BULLET = re.compile(r"^([ \t]*)[-*+][ \t]+(?:\[([ xX])\][ \t]+)?")
RULE = re.compile(r"^[ \t]{0,3}(?:(?:-[ \t]*){3,}|(?:\*[ \t]*){3,}|(?:_[ \t]*){3,})$")
# `__x__` stays: in this trade it is more often a Python name than emphasis.
BOLD = re.compile(r"\*\*(?=\S)(.{1,500}?)(?<=\S)\*\*")
ITALIC = re.compile(r"(?<![\w*])\*(?=[^\s*])([^*\n]+?)(?<=[^\s*])\*(?![\w*])")
STRIKE = re.compile(r"~~(?=\S)(.{1,500}?)(?<=\S)~~")
# Private-use characters stand for finished pieces while a line is styled; the model's own are taken out
# before.
HOLD, HELD = "\ue000", re.compile("\ue000(\\d+)\ue001")
PRIVATE = re.compile("[\ue000-\ue003]")
BOLD_MARK = "\ue002"
HALF_PIECE = re.compile(r"(?:&[a-z]{0,3}|<[^<>]*)$")


def to_mrkdwn(markdown: str, hosts: Hosts = frozenset()) -> str:
    """The whole text, code blocks, tables, headings, lists and all."""
    out: list[str] = []
    for is_code, lines in pieces(tidied(markdown)):
        for is_table, run in [(True, lines)] if is_code else tables(lines):
            out += _code_block(run) if is_table else [_line(line, hosts) for line in run]
    return "\n".join(out)


def plain(text: str, most: int) -> str:
    """One line for a place that reads no markup, like a task's title: without signs that mean something."""
    line = " ".join(tidied(text).split()).replace("<", "‹").replace(">", "›")
    return unpinging(clamped(line, most))


def said(text: str, most: int) -> str:
    """One line of ours or of a person for a mrkdwn place: escaped, and without any styling of its own."""
    return _escaped(clamped(" ".join(tidied(text).split()), most))


def clamped(text: str, most: int) -> str:
    """At most so many characters, with an ellipsis where something was cut."""
    return text if len(text) <= most else text[: max(0, most - 1)].rstrip() + "…"


def cut(mrkdwn: str, most: int, most_bytes: int) -> str:
    """Finished mrkdwn, shortened if need be, with no half of an escape or a link at its end."""
    if len(mrkdwn) <= most and len(mrkdwn.encode("utf-8", "replace")) <= most_bytes:
        return mrkdwn
    short = clamped_bytes(mrkdwn[: most - 1], max(0, most_bytes - len("…".encode())))
    return HALF_PIECE.sub("", short).rstrip() + "…"


def clamped_bytes(text: str, most: int) -> str:
    """At most so many bytes of UTF-8, whole characters only."""
    return text.encode("utf-8", "replace")[:most].decode("utf-8", "ignore")


def tidied(text: str) -> str:
    """Without control characters, halves of surrogate pairs, and the characters that we use as marks."""
    return PRIVATE.sub("", NOT_SHOWN.sub("", text.replace("\r\n", "\n").replace("\r", "\n")))


def unpinging(text: str) -> str:
    """Break "@channel" and its like."""
    return BROADCAST.sub("@" + UNSEEN, text)


def _escaped(text: str) -> str:
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return unpinging(text)


def _code_block(lines: list[str]) -> list[str]:
    """Slack ends a block at the next three backticks, wherever they stand."""
    return ["```", *(_escaped(line).replace("```", f"`{UNSEEN}`{UNSEEN}`") for line in lines), "```"]


def _line(line: str, hosts: Hosts) -> str:
    if RULE.match(line):
        return "———"
    heading = HEADING.match(line)
    held: list[str] = []

    def hold(piece: str) -> str:
        held.append(piece)
        return f"{HOLD}{len(held) - 1}\ue001"

    marked = TOKEN.sub(lambda found: _token(found, hold, hosts), heading[1] if heading else line)
    marked = _escaped(marked.replace("`", BARE_TICK))
    styled = _styled(BULLET.sub(_bullet, marked))
    if heading:
        inner = styled.replace(BOLD_MARK, "").strip()
        styled = f"{BOLD_MARK}{inner}{BOLD_MARK}" if inner else ""
    return HELD.sub(lambda found: held[int(found[1])], styled).replace(BOLD_MARK, "*")


def _bullet(found: re.Match[str]) -> str:
    box = {None: "•", " ": "☐"}.get(found[2], "☑")
    return f"{found[1]}{box} "


def _styled(line: str) -> str:
    line = BOLD.sub(rf"{BOLD_MARK}\1{BOLD_MARK}", line)
    return STRIKE.sub(r"~\1~", ITALIC.sub(r"_\1_", line))


def _token(found: re.Match[str], hold: Callable[[str], str], hosts: Hosts) -> str:
    """Code, links, pictures and bare URLs are finished and put aside; labels are styled like other words."""
    if found["code"]:
        return hold(_in_code(found["code"]))
    if found["bare"]:
        tail = TRAILING.search(found["bare"])
        url = found["bare"][: tail.start()] if tail else found["bare"]
        return hold(_address(url, "", hosts)) + (tail[0] if tail else "")
    label = found["label"].strip()
    if found["image"]:
        return f"[image{': ' if label else ''}{label}] " + hold(_in_code(found["url"]))
    if not label or label == found["url"]:
        return hold(_address(found["url"], "", hosts))
    if is_allowed(found["url"], hosts):
        return hold(_address(found["url"], label, hosts))
    return f"{label} ({hold(_in_code(found['url']))})"


def _address(url: str, label: str, hosts: Hosts) -> str:
    if not is_allowed(url, hosts):
        return _in_code(url)
    address = _escaped(url.replace("|", "%7C"))
    return f"<{address}|{_escaped(label.replace('|', '¦'))}>" if label else f"<{address}>"


def _in_code(words: str) -> str:
    return f"`{_escaped(words.replace('`', BARE_TICK))}`"


def is_allowed(url: str, hosts: Hosts) -> bool:
    """Whether a URL may be a link: https, to exactly one of the hosts, without user, port or odd signs."""
    try:
        parts = urlsplit(url)
        plain_host = parts.netloc.isascii() and parts.netloc.lower() == (parts.hostname or "")
    except ValueError:
        return False
    return (
        parts.scheme.lower() == "https"
        and plain_host
        and "\\" not in url
        and len(url) <= LONGEST_LINK
        and parts.hostname in hosts
    )
