"""Logs on standard error: an event name and its fields a line, as JSON for machines, plainly for a terminal.

Rule 1: no known secret is written, wherever it stands in a record.
Rule 2: no data can begin a line of its own or act on a terminal; only tracebacks have several lines.
"""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TextIO

import structlog
from structlog.typing import EventDict, Processor

Redact = Callable[[str], str]

OURS = ("bot", "core", "storage", "__main__")
# C0, DEL, C1, line and paragraph separators, bidirectional controls (trojansource.codes), lone surrogates.
ACTING = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
ACTING_BUT_NEWLINE = re.compile(f"(?!\n){ACTING.pattern}")


def known_secrets(secrets: Sequence[str]) -> Redact:
    """Blots out exactly these values, the longest first."""
    if not secrets:
        return lambda text: text
    pattern = re.compile("|".join(re.escape(secret) for secret in sorted(secrets, key=len, reverse=True)))
    return lambda text: pattern.sub("[redacted]", text)


def setup(redact: Redact = lambda text: text, *, stream: TextIO | None = None) -> None:
    """Send everything, ours and other people's, through one form. Called again, the last call holds."""
    out = stream or sys.stderr
    pretty = out.isatty()
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.ExtraAdder(),
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
        _made_safe(redact, pretty=pretty),
    ]
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
        cache_logger_on_first_use=False,
    )
    handler = logging.StreamHandler(out)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[_plain_words, *shared],
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, _renderer(pretty=pretty)],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)  # other people's libraries: slack_bolt, aiohttp, apscheduler, mcp, httpx
    for name in OURS:
        logging.getLogger(name).setLevel(logging.INFO)
    logging.captureWarnings(True)
    logging.raiseExceptions = False  # a closed standard error is no reason to fail


def silence() -> None:
    """Log nothing: for commands whose output is for people, who are told of failures in other words."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    logging.getLogger().handlers[:] = [logging.NullHandler()]


def _renderer(*, pretty: bool) -> Processor:
    if pretty:
        return structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback)
    return structlog.processors.JSONRenderer(sort_keys=False)


def _plain_words(_: Any, __: str, event: EventDict) -> EventDict:
    """Other people's records: whatever they are, their event is a text."""
    event["event"] = str(event.get("event", ""))
    return event


def _made_safe(redact: Redact, *, pretty: bool) -> Processor:
    def safe(value: Any) -> Any:
        if isinstance(value, str):
            return ACTING.sub(_escaped, redact(value))
        if value is None or isinstance(value, bool | int | float):
            return value
        if isinstance(value, Mapping):
            return {str(key): safe(item) for key, item in value.items()}
        if isinstance(value, list | tuple | set | frozenset):
            return [safe(item) for item in value]
        return safe(repr(value))

    def process(_: Any, __: str, event: EventDict) -> EventDict:
        kept = {key: value for key, value in event.items() if key.startswith("_")}  # structlog's own
        trace = event.get("exception")
        made: EventDict = {key: safe(value) for key, value in event.items() if key not in kept}
        if isinstance(trace, str):
            lines = ACTING_BUT_NEWLINE if pretty else re.compile(r"[\ud800-\udfff]")
            made["exception"] = lines.sub(_escaped, redact(trace))
        return {"event": made.pop("event", ""), **made, **kept}

    return process


def _escaped(found: re.Match[str]) -> str:
    code = ord(found.group())
    return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}"
