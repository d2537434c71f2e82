"""A test Slack that speaks the real wire protocol and enforces Slack's real rules.

Read in this order: server (what a test holds), people, trouble, inspection, laws (what it can do with it),
api and methods (what the app talks to), blocks and metadata (what is refused), delivery (events).
"""

from tests.servers.slack.calls import Call, Violation
from tests.servers.slack.delivery import Delivery
from tests.servers.slack.messages import Message, Version
from tests.servers.slack.server import SlackServer
from tests.servers.slack.shapes import Json
from tests.servers.slack.state import Mentions
from tests.servers.slack.workspace import Channel, User

__all__ = [
    "Call",
    "Channel",
    "Delivery",
    "Json",
    "Mentions",
    "Message",
    "SlackServer",
    "User",
    "Version",
    "Violation",
]
