"""The ports through which the parts of the bot meet. Each method states what it may raise.

Adapters (`bot.slack`, `bot.model`, `bot.tools`) implement these and do not know each other; `bot.flow` uses
them and knows no adapter; `bot.compose` puts the two together.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

from core.arrivals import Arrival, Author, Deletion, EarlierMessage, Edit, Thread
from core.card import Card
from core.generation import GenerationOutcome, ModelRequest
from core.history import Json
from core.tools import CallResult, ToolSpec
from core.usage import Usage

# --- what a platform hands in ------------------------------------------------------------------------

Incoming: TypeAlias = Arrival | Edit | Deletion

Accept: TypeAlias = Callable[[Incoming], Awaitable[None]]
"""Stores one incoming thing durably and returns; raises when it could not be stored, and then the platform
must not be told that it was received. Storing the same key again does nothing."""


# --- the platform ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Post:
    """A message of ours other than a card.

    `kind` is "answer" or a note's kind ("failed", "chart", …); an answer names its `final_event_id`.
    `part` (from 1) and `parts` are set for answers and long notes; `text` is Markdown as the model writes it,
    already split by `Chat.split`. `chart` is shown as a picture with `text` as its title.
    `post_id` is ours, unique, and travels in the message's metadata, so that the message can be found again.
    """

    post_id: str
    kind: str
    text: str
    turn_id: str | None = None
    final_event_id: str | None = None
    part: int = 1
    parts: int = 1
    chart: bytes | None = None


@dataclass(frozen=True, slots=True)
class Found:
    """A message of ours that the platform has: its reference, and the metadata it carries."""

    ref: str
    event_type: str
    payload: dict[str, Json] = field(default_factory=dict)


AboutToSend: TypeAlias = Callable[[], Awaitable[None]]
"""Called when a message's turn has come, right before it is sent; what it raises keeps it from being sent."""


async def at_once() -> None:
    """Nothing is to be done before a message is sent."""


class Chat(Protocol):
    """A platform on which people and we talk. All references are the platform's own message ids.

    Every method may raise `Temporary` (with a time to wait where one was said) or `Permanent`, and what
    bot.errors has of either: `Unreachable`, `Gone`, `Unchangeable`, `Closed`, `Rejected`.
    Methods that create something may also raise `OutcomeUnknown`; the caller then looks with `find` before it
    tries again. Each method waits for its share of the platform's rate budget by itself.
    """

    async def card_slot(self, thread: Thread, ref: str | None, *, urgent: bool) -> None:
        """Wait for the rate budget's next place for a card (a post when `ref` is None). Harmless to cancel.

        `urgent` (a release, a stop) goes ahead of progress. Whoever waited shows the newest state, not
        the one that it had when it began to wait.
        """
        ...

    async def show_card(self, thread: Thread, ref: str | None, card: Card) -> str:
        """Show the card at once, in the place that `card_slot` gave; returns the reference."""
        ...

    async def post(self, thread: Thread, post: Post, about_to_send: AboutToSend = at_once) -> str:
        """Post one message into the thread and return its reference."""
        ...

    async def tell_privately(self, thread: Thread, user_id: str, text: str) -> None:
        """Show `text` to one person only, in the thread."""
        ...

    async def tell_directly(
        self, thread: Thread, user_id: str, post: Post, about_to_send: AboutToSend = at_once
    ) -> str:
        """Post to one person outside of the thread, which takes nothing any more; returns the reference."""
        ...

    async def set_receipt(self, thread: Thread, ref: str, receipt: str | None, previous: str | None) -> None:
        """Make `receipt` our one reaction on the message. Harmless when it already is."""
        ...

    async def find(self, thread: Thread, since: float) -> list[Found]:
        """Our own messages in the thread since that time (epoch seconds), oldest first."""
        ...

    async def delete(self, thread: Thread, ref: str) -> None:
        """Delete a message of ours. Harmless when it is gone."""
        ...

    async def earlier_messages(self, thread: Thread, before: float) -> list[EarlierMessage]:
        """What others wrote in the thread before that time, oldest first (bounded to the newest 200)."""
        ...

    async def author(self, workspace: str, user_id: str) -> Author:
        """The platform's record of a person, cached for a few minutes."""
        ...

    async def live_cards(self, since: float) -> list[tuple[Thread, Found]]:
        """Cards of ours that still show as live, in all channels we are in, since that time."""
        ...

    def split(self, text: str) -> list[str]:
        """Split Markdown into parts that each fit one message, code fences closed and reopened. Pure."""
        ...

    async def close(self) -> None:
        """Give back sockets and files."""
        ...


# --- the model ---------------------------------------------------------------------------------------


class Generation(Protocol):
    """One request under way."""

    async def run(self) -> GenerationOutcome:
        """Send the request and read its answer. Called once. Raises nothing but CancelledError.

        Cancelling it breaks the stream off and closes the connection before it returns.
        """
        ...

    @property
    def usage(self) -> Usage:
        """What it has cost so far: estimated (`exact=False`) until the provider has told."""
        ...

    @property
    def doing(self) -> str:
        """What the model is doing, in a few words for the card; never its words or thoughts."""
        ...


class Model(Protocol):
    """A language model."""

    @property
    def name(self) -> str:
        """The model's name, as booked."""
        ...

    def open(self, request: ModelRequest) -> Generation:
        """Prepare a request; nothing is sent before `run`."""
        ...


# --- the tools ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call to run. `call_id` is the same when the call is repeated."""

    call_id: str
    tool: str
    input: dict[str, Json]


class Tools(Protocol):
    """All tools of this process."""

    async def ready(self) -> list[str]:
        """Wait until every provider is connected or has failed its limit; one line for each missing one."""
        ...

    def specs(self) -> tuple[ToolSpec, ...]:
        """The tools that can be called now, in a stable order."""
        ...

    async def run(self, call: ToolCall, hurry: Hurry) -> CallResult:
        """Run one call to its end, its time limit, or, where it is interruptible, until `hurry` is set.

        Never raises (but CancelledError on the death of the process): every failure is a result. Unknown
        tools and inputs that do not fit the schema come back as errors that say what would be right.
        Redacted and bounded.
        """
        ...


class Hurry(Protocol):
    """Set when the turn wants to reach its safe point; asyncio.Event fits."""

    def is_set(self) -> bool:
        """Whether the turn is in a hurry."""
        ...

    async def wait(self) -> object:
        """Wait until it is."""
        ...
