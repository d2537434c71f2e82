"""The shop's logs: request lines of the journeys, and what services say of themselves. Always the same."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property, lru_cache

from bot.incident.commits import DAY
from bot.incident.deploys import deploys
from bot.incident.journeys import Field, Journey, Span, journeys
from bot.incident.noise import dice
from bot.incident.story import TICK_S, Knob, Notice, Story

BLOCK = 20  # scrapes whose lines are made together: five minutes
SPILL_S = 60.0  # a request is told when it ends, which may be in the next block
SLOW_S = 1.0

ALWAYS = (
    Notice("database", "info", "checkpoint complete", -1.1 * DAY, every=5.0, fields=(("buffers", 812),)),
    Notice("database", "info", "autovacuum done", -1.1 * DAY + 3, every=23.0, fields=(("table", "orders"),)),
    Notice("gateway", "info", "access log rotated", -1.1 * DAY + 1, every=30.0),
    Notice("gateway", "warn", "certificate ends soon", -1.1 * DAY + 7, every=60.0,
           fields=(("host", "old.shop.example"), ("days", 5))),
    Notice("checkout", "warn", "webhook with an unknown signature ignored", -1.1 * DAY + 2, every=17.0,
           fields=(("from", "payments sandbox"),)),
    Notice("stock", "info", "restock report done", -1.1 * DAY + 11, every=60.0, fields=(("articles", 14),)),
)  # fmt: skip


@dataclass(frozen=True)
class Line:
    """One line with its two labels."""

    at: float
    service: str
    level: str
    record: Mapping[str, Field]

    @cached_property
    def text(self) -> str:
        """As it was written; made when it is asked for, since most lines never are."""
        return json.dumps(self.record)


def lines(story: Story, block: int) -> tuple[Line, ...]:
    """The lines of five minutes, in order; the last may be told a moment later."""
    return _lines(story, block)


def block_of(story: Story, at: float) -> int:
    """The block that a moment is in."""
    return math.floor((at - story.origin) / (TICK_S * BLOCK))


@lru_cache(maxsize=160)
def _lines(story: Story, block: int) -> tuple[Line, ...]:
    found: list[Line] = []
    for tick in range(block * BLOCK, (block + 1) * BLOCK):
        for journey in journeys(story, tick):
            found += _told(journey)
        found += _crawler(story, tick)
    begin = story.origin + block * BLOCK * TICK_S
    found += _notices(story, begin, begin + BLOCK * TICK_S)
    return tuple(sorted(found, key=lambda line: line.at))


def _line(at: float, service: str, level: str, message: str, **fields: Field) -> Line:
    when = datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    record: dict[str, Field] = {"ts": when, "level": level, "service": service, "msg": message, **fields}
    return Line(at, service, level, record)


def _told(journey: Journey) -> Iterator[Line]:
    """What each service on the way writes at the end of its part."""
    for span in journey.root.all():
        if "route" not in span.tags:
            continue
        level, message = _level(span)
        fields: dict[str, Field] = {"trace_id": journey.trace_id, "status": span.status}
        fields |= {"duration_ms": round(span.duration * 1_000, 1), **span.tags}
        if span.error:
            fields["error"] = span.error
        yield _line(span.start + span.duration, span.service, level, message, **fields)


def _level(span: Span) -> tuple[str, str]:
    if span.status >= 500:
        return "error", "request failed"
    return ("warn", "request slow") if span.duration > SLOW_S else ("info", "request done")


def _crawler(story: Story, tick: int) -> Iterator[Line]:
    """Pages that were never there, asked for by somebody who tries them all."""
    at = story.origin + tick * TICK_S
    effects = [each for each in story.scenario.effects if each.knob is Knob.CRAWLER]
    if not any(each.since <= story.minute(at) < each.until for each in effects):
        return
    rng = dice(story.seed, "crawler", tick)
    for _ in range(4):
        path = rng.choice(("/wp-login.php", "/.env", "/admin.php", "/backup.zip", "/xmlrpc.php"))
        yield _line(
            at + rng.random() * TICK_S, "gateway", "warn", "no such page",
            route="/products", path=path, status=404, client="203.0.113.77",
        )  # fmt: skip


def _notices(story: Story, begin: float, end: float) -> Iterator[Line]:
    for notice in (*ALWAYS, *story.scenario.notices):
        minute = notice.since
        if math.isfinite(notice.every):
            steps = max(math.ceil((story.minute(begin) - notice.since) / notice.every), 0)
            minute += steps * notice.every
        while story.moment(minute) < end and minute <= notice.until:
            if story.moment(minute) >= begin:
                at = story.moment(minute) + 0.137
                yield _line(at, notice.service, notice.level, notice.message, **dict(notice.fields))
            minute += notice.every
    for each in deploys(story):
        if begin <= each.at < end:
            fields = {"version": each.version, "commit": each.commit[:12]}
            yield _line(each.at + 2.4, each.service, "info", "started", **fields)
            yield _line(each.at + 0.2, each.service, "info", "stopping", reason="deploy")
