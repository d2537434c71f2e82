"""Logs have one form, give no secret away, and no data in them can act."""

import io
import json
import logging
from collections.abc import Iterator

import pytest
import structlog

from bot import logs


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def _logging_as_before() -> Iterator[None]:
    root, raising = logging.getLogger(), logging.raiseExceptions
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    logging.raiseExceptions = raising
    logging.captureWarnings(False)
    structlog.reset_defaults()


def written(stream: io.StringIO) -> list[dict[str, object]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_a_line_is_one_json_object_with_the_event_first() -> None:
    out = io.StringIO()
    logs.setup(stream=out)
    structlog.get_logger("bot.x").info("turn_started", turn="T1", steps=3)
    (record,) = written(out)
    assert next(iter(record)) == "event"
    assert record | {"timestamp": ""} == {
        "event": "turn_started",
        "turn": "T1",
        "steps": 3,
        "level": "info",
        "logger": "bot.x",
        "timestamp": "",
    }


def test_other_peoples_libraries_take_the_same_form_from_warnings_up() -> None:
    out = io.StringIO()
    logs.setup(stream=out)
    for name in ("slack_bolt", "aiohttp", "apscheduler", "mcp", "httpx"):
        logging.getLogger(name).info("chatter")
        logging.getLogger(name).warning("trouble with %s", "x")
    assert [(r["logger"], r["event"]) for r in written(out)] == [
        (name, "trouble with x") for name in ("slack_bolt", "aiohttp", "apscheduler", "mcp", "httpx")
    ]


@pytest.mark.parametrize("out", [io.StringIO(), Terminal()], ids=["machine", "terminal"])
def test_known_secrets_are_written_nowhere(out: io.StringIO) -> None:
    logs.setup(logs.known_secrets(["hunter2", "hunter22"]), stream=out)
    log = structlog.get_logger("bot.x")
    log.info("saw hunter2", field="hunter22", nested={"list": ["hunter2"]}, thing=ValueError("hunter2"))
    logging.getLogger("slack_bolt").warning("header %s", "hunter2")
    try:
        raise ValueError("hunter2")
    except ValueError:
        log.exception("failed")
    assert "hunter2" not in out.getvalue()
    assert out.getvalue().count("[redacted]") >= 6


@pytest.mark.parametrize("out", [io.StringIO(), Terminal()], ids=["machine", "terminal"])
def test_data_can_neither_begin_a_line_nor_act_on_a_terminal(out: io.StringIO) -> None:
    logs.setup(stream=out)
    structlog.get_logger("bot.x").info("seen\nfake", text="\x1b[31mred\r\nfake line\u2028\x9b31m\ud800\u202e")
    assert len(out.getvalue().splitlines()) == 1
    assert "\x1b[31mred" not in out.getvalue()
    assert not set(out.getvalue()) & set("\r\u2028\x9b\ud800\u202e")


def test_a_traceback_is_one_json_field() -> None:
    out = io.StringIO()
    logs.setup(stream=out)
    try:
        raise ValueError("bad\x1b[2J")
    except ValueError:
        structlog.get_logger("bot.x").exception("failed")
    (record,) = written(out)
    assert "Traceback" in str(record["exception"])
    assert "\x1b" not in out.getvalue()
