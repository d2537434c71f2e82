"""Text objects, rich text and interactive elements: what stands inside blocks."""

from __future__ import annotations

from collections.abc import Mapping

from tests.servers.slack.checks import (
    Checker,
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
    whole,
)

ID = string(255)
URL = string(3000)


def text(most: int, *kinds: str) -> Checker:
    """A text object of one of these kinds."""
    fields: Shape = {"text": need(string(most))}
    table: Mapping[str, Shape] = {
        "plain_text": {**fields, "emoji": may(boolean)},
        "mrkdwn": {**fields, "verbatim": may(boolean)},
    }
    return typed(table, kinds or ("plain_text", "mrkdwn"))


PLAIN = "plain_text"
SLACK_FILE = either("id", "url", shaped({"id": may(ID), "url": may(URL)}))

STYLE = shaped({name: may(boolean) for name in ("bold", "italic", "strike", "code", "underline", "unlink")})
INLINE: Mapping[str, Shape] = {
    "text": {"text": need(string(12_000)), "style": may(STYLE)},
    "link": {"url": need(URL), "text": may(string(3000)), "unsafe": may(boolean), "style": may(STYLE)},
    "emoji": {"name": need(ID), "unicode": may(string(255)), "style": may(STYLE)},
    "user": {"user_id": need(ID), "style": may(STYLE)},
    "usergroup": {"usergroup_id": need(ID), "style": may(STYLE)},
    "channel": {"channel_id": need(ID), "style": may(STYLE)},
    "broadcast": {"range": need(one_of("here", "channel", "everyone")), "style": may(STYLE)},
    "date": {
        "timestamp": need(whole),
        "format": need(string(255)),
        "url": may(URL),
        "fallback": may(string(255)),
        "style": may(STYLE),
    },
    "color": {"value": need(string(20)), "style": may(STYLE)},
}
MANY = 1_000
INLINES = listed(typed(INLINE), MANY, 0)
SECTION: Shape = {"elements": need(INLINES)}
RICH: Mapping[str, Shape] = {
    "rich_text_section": SECTION,
    "rich_text_quote": {"elements": need(INLINES), "border": may(whole)},
    "rich_text_preformatted": {
        "elements": need(listed(typed(INLINE, ("text", "link")), MANY, 0)),
        "border": may(whole),
        "language": may(ID),
    },
    "rich_text_list": {
        "elements": need(listed(typed({"rich_text_section": SECTION}), MANY, 0)),
        "style": need(one_of("bullet", "ordered")),
        "indent": may(whole),
        "offset": may(whole),
        "border": may(whole),
    },
}
RICH_TEXT: Shape = {"elements": need(listed(typed(RICH), MANY, 0)), "block_id": may(ID)}
rich_text = typed({"rich_text": RICH_TEXT})

CONFIRM = shaped(
    {
        "title": need(text(100, PLAIN)),
        "text": need(text(300)),
        "confirm": need(text(30, PLAIN)),
        "deny": need(text(30, PLAIN)),
        "style": may(one_of("primary", "danger")),
    }
)
OPTION = shaped(
    {
        "text": need(text(75)),
        "value": need(string(150)),
        "description": may(text(75, PLAIN)),
        "url": may(URL),
    }
)
IMAGE: Shape = {"image_url": may(URL), "slack_file": may(SLACK_FILE), "alt_text": need(string(2000, 0))}
image = either("image_url", "slack_file", typed({"image": IMAGE}))

FEEDBACK = shaped(
    {"text": need(text(75, PLAIN)), "value": need(string(2000)), "accessibility_label": may(string(75))}
)
BUTTON: Shape = {
    "text": need(text(75, PLAIN)),
    "action_id": may(ID),
    "value": may(string(2000, 0)),
    "url": may(URL),
    "style": may(one_of("primary", "danger")),
    "confirm": may(CONFIRM),
    "accessibility_label": may(string(75)),
    "visible_to_user_ids": may(listed(ID, 100)),
    "agent_prompt": may(string(4000)),
    "agent_prompt_display": may(string(75)),
}
MENU: Shape = {
    "action_id": may(ID),
    "placeholder": may(text(150, PLAIN)),
    "confirm": may(CONFIRM),
    "focus_on_load": may(boolean),
}
CHOICE: Shape = {"action_id": may(ID), "confirm": may(CONFIRM), "focus_on_load": may(boolean)}
INTERACTIVE: Mapping[str, Shape] = {
    "button": BUTTON,
    "static_select": {**MENU, "options": need(listed(OPTION, 100)), "initial_option": may(OPTION)},
    "users_select": {**MENU, "initial_user": may(ID)},
    "overflow": {"action_id": may(ID), "options": need(listed(OPTION, 5)), "confirm": may(CONFIRM)},
    "radio_buttons": {**CHOICE, "options": need(listed(OPTION, 10)), "initial_option": may(OPTION)},
    "checkboxes": {
        **CHOICE,
        "options": need(listed(OPTION, 10)),
        "initial_options": may(listed(OPTION, 10)),
    },
}
FEEDBACK_BUTTONS: Shape = {
    "action_id": may(ID),
    "positive_button": need(FEEDBACK),
    "negative_button": need(FEEDBACK),
}
ICON_BUTTON: Shape = {
    "action_id": may(ID),
    "icon": need(one_of("trash")),
    "text": need(text(75, PLAIN)),
    "value": may(string(2000)),
    "accessibility_label": may(string(75)),
    "visible_to_user_ids": may(listed(ID, 10)),
    "confirm": may(CONFIRM),
}
URL_SOURCE: Mapping[str, Shape] = {"url": {"url": need(URL), "text": need(string(255))}}
