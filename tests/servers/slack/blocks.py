"""Block Kit as Slack enforces it for messages: one table of block shapes, then the laws of the whole.

Limits are those of Slack's pages; where the pages are silent, those that were measured.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from tests.servers.slack.checks import (
    Checker,
    Report,
    Shape,
    boolean,
    either,
    listed,
    may,
    need,
    one_of,
    shaped,
    string,
    typed,
)
from tests.servers.slack.elements import (
    FEEDBACK_BUTTONS,
    ICON_BUTTON,
    ID,
    IMAGE,
    INTERACTIVE,
    PLAIN,
    RICH_TEXT,
    URL_SOURCE,
    image,
    rich_text,
    text,
)
from tests.servers.slack.shapes import Json, Refused

MOST_BLOCKS = 50
MOST_TEXT = 12_000
MOST_TABLE_TEXT = 10_000

CONTEXT_TEXT = text(3000)
INTERACTIVE_ELEMENT = typed(INTERACTIVE)


def context_element(value: Any, place: str, report: Report) -> None:
    kind = value.get("type") if isinstance(value, dict) else None
    (image if kind == "image" else CONTEXT_TEXT)(value, place, report)


def accessory(value: Any, place: str, report: Report) -> None:
    kind = value.get("type") if isinstance(value, dict) else None
    (image if kind == "image" else INTERACTIVE_ELEMENT)(value, place, report)


def child_block(value: Any, place: str, report: Report) -> None:
    CHILD(value, place, report)


TASK: Shape = {
    "task_id": need(ID),
    "title": need(string(12_000)),
    "status": need(one_of("pending", "in_progress", "complete", "error")),
    "details": may(rich_text),
    "output": may(rich_text),
    "sources": may(listed(typed(URL_SOURCE), 100, 0)),
}
CELLS: Mapping[str, Shape] = {
    "raw_text": {"text": need(string(MOST_TABLE_TEXT))},
    "raw_number": {"value": need(lambda v, p, r: None), "text": may(string(255))},
    "rich_text": RICH_TEXT,
}
COLUMN = shaped({"align": may(one_of("left", "center", "right")), "is_wrapped": may(boolean)})

BLOCKS: Mapping[str, Shape] = {
    "section": {
        "text": may(text(3000)),
        "fields": may(listed(text(2000), 10)),
        "accessory": may(accessory),
        "expand": may(boolean),
    },
    "header": {"text": need(text(150, PLAIN))},
    "divider": {},
    "context": {"elements": need(listed(context_element, 10))},
    "actions": {"elements": need(listed(INTERACTIVE_ELEMENT, 25))},
    "context_actions": {
        "elements": need(listed(typed({"feedback_buttons": FEEDBACK_BUTTONS, "icon_button": ICON_BUTTON}), 5))
    },
    "markdown": {"text": need(string(MOST_TEXT))},
    "image": {**IMAGE, "title": may(text(2000, PLAIN))},
    "rich_text": RICH_TEXT,
    "task_card": TASK,
    "plan": {"title": need(string(12_000)), "tasks": may(listed(typed({"task_card": TASK}), 50, 0))},
    "table": {
        "rows": need(listed(listed(typed(CELLS), 20), 100)),
        "column_settings": may(listed(COLUMN, 20, 0)),
    },
    "container": {
        "title": may(text(150, PLAIN)),
        "rich_text_title": may(rich_text),
        "subtitle": may(text(150)),
        "child_blocks": need(listed(child_block, 10)),
        "width": may(one_of("narrow", "standard", "wide", "full")),
        "icon": may(image),
        "is_collapsible": may(boolean),
        "default_collapsed": may(boolean),
        "has_header_divider": may(boolean),
    },
}
WITH_ID: Mapping[str, Shape] = {kind: {**shape, "block_id": may(ID)} for kind, shape in BLOCKS.items()}
ANY: Checker = typed(WITH_ID)
CHILD: Checker = typed(WITH_ID, WITH_ID.keys() - {"container", "plan"})
AT_LEAST_ONE: Mapping[str, Checker] = {
    "section": either("text", "fields", ANY, both=True),
    "image": either("image_url", "slack_file", ANY),
    "container": either("title", "rich_text_title", ANY, both=True),
}

FileUsable = Callable[[Json], bool]


def checked_blocks(value: Any, usable: FileUsable) -> list[Json]:
    """The blocks, or Slack's refusal; `usable` says whether a slack_file may be shown."""
    if not isinstance(value, list) or not all(isinstance(block, dict) for block in value):
        raise Refused("invalid_blocks_format")
    faults: list[str] = []

    def report(what: str, place: str) -> None:
        faults.append(f"{what} [json-pointer:{place}]")

    if len(value) > MOST_BLOCKS:
        report(f"no more than {MOST_BLOCKS} items allowed", "/blocks")
    for at, block in enumerate(value):
        AT_LEAST_ONE.get(str(block.get("type")), ANY)(block, f"/blocks/{at}", report)
    if not faults:
        _laws_of_the_whole(value, usable, report)
    if faults:
        messages = [f"[ERROR] {fault}" for fault in faults]
        raise Refused("invalid_blocks", errors=faults, response_metadata={"messages": messages})
    _sizes(value)
    return value


def _laws_of_the_whole(blocks: list[Json], usable: FileUsable, report: Report) -> None:
    inner = list(nested(blocks))
    for name in ("block_id", "task_id"):
        counted = Counter(part[name] for part in inner if name in part)
        for twice in (key for key, count in counted.items() if count > 1):
            report(f"{name} must be unique: {twice}", "/blocks")
    kinds = {block["type"] for block in blocks}
    if {"plan", "task_card"} <= kinds:
        report("plan and task_card cannot stand in one message", "/blocks")
    for part in inner:
        if "slack_file" in part and not usable(part["slack_file"]):
            report("invalid slack file", "/blocks")
        if part.get("type") == "container":
            _container_flags(part, report)
    for at, block in enumerate(blocks):
        ids = Counter(e["action_id"] for e in block.get("elements", []) if "action_id" in e)
        if any(count > 1 for count in ids.values()):
            report("action_id must be unique within a block", f"/blocks/{at}/elements")


def _container_flags(block: Json, report: Report) -> None:
    if block.get("default_collapsed") and not block.get("is_collapsible"):
        report("default_collapsed requires is_collapsible", "/blocks")
    if block.get("has_header_divider") and block.get("is_collapsible"):
        report("has_header_divider cannot be combined with is_collapsible", "/blocks")


def _sizes(blocks: list[Json]) -> None:
    tables = [part for part in nested(blocks) if part.get("type") == "table"]
    if len(tables) > 1:
        messages = ["[ERROR] only_one_table_allowed"]
        raise Refused("invalid_attachments", response_metadata={"messages": messages})
    if sum(map(text_size, tables)) > MOST_TABLE_TEXT or text_size(blocks) > MOST_TEXT:
        raise Refused("msg_blocks_too_long")


def nested(value: Any) -> Iterator[Json]:
    """Every object within, outermost first."""
    if isinstance(value, dict):
        yield value
        for inner in value.values():
            yield from nested(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from nested(inner)


def text_size(value: Any) -> int:
    """The characters that people see."""
    return sum(
        len(shown)
        for part in nested(value)
        for key in ("text", "title")
        if isinstance(shown := part.get(key), str)
    )
