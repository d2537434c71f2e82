"""Cards: what should be shown, what was last shown, and where.

The platform is never asked what the state is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Row, case, func, literal, or_, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from core.inbox import Fate
from core.policy import Effect
from storage.claims import held_by_others, still_holds
from storage.engine import db_now
from storage.tables import calls, cards, conversations, inbox, requests, settlements, tombstones, turns


async def create(tx: AsyncConnection, card_id: str, conversation_id: str, turn_id: str) -> None:
    """A new card for a turn; it is posted by whoever reconciles it."""
    values = {"id": card_id, "conversation_id": conversation_id, "turn_id": turn_id}
    await tx.execute(cards.insert(), values)


async def hand_on(tx: AsyncConnection, card_id: str, turn_id: str) -> None:
    """The card now belongs to the turn that goes on with the work."""
    await tx.execute(
        update(cards)
        .where(cards.c.id == card_id)
        .values(turn_id=turn_id, wanted=cards.c.wanted + 1, tries=0, given_up=None)
    )


async def want(tx: AsyncConnection, turn_id: str, *, urgent: bool = False) -> None:
    """The card of this turn should be looked at again; `urgent` goes ahead of progress.

    What is urgent is worth another try even where the platform took nothing before.
    """
    values: dict[str, Any] = {"wanted": cards.c.wanted + 1}
    if urgent:
        values |= {"urgent": True, "not_before": 0, "given_up": None}
    await tx.execute(update(cards).where(cards.c.turn_id == turn_id).values(**values))


GONE = "gone: "
"""So begins the record of a card whose message was deleted: it is done with."""


@dataclass(frozen=True, slots=True)
class CardRecords:
    """Everything that a card is made of, as rows."""

    card: Row[Any]
    turn: Row[Any]
    settlement: Row[Any] | None
    calls: list[Row[Any]]
    requests: list[Row[Any]]
    steers: list[Row[Any]]
    now: float
    names: dict[str, str]
    turn_ids: frozenset[str]  # every turn whose card this was
    began_at: float  # the start of the first of them
    stop_by: str | None  # who asked to stop the turn, while it runs
    steer_by: str | None  # who waits to be read, while it runs


_ADDRESS = (
    conversations.c.platform,
    conversations.c.workspace,
    conversations.c.channel,
    conversations.c.thread,
)


def thing(card_id: str) -> str:
    """What is claimed by whoever shows this card."""
    return f"card:{card_id}"


_THING = literal("card:").concat(cards.c.id)
_IS_WANTED = (cards.c.wanted > cards.c.shown, cards.c.given_up.is_(None))


async def due(tx: AsyncConnection, owner: str, min_interval_s: float, limit: int = 100) -> list[Row[Any]]:
    """Cards whose wanted state was not shown yet, releases and stops first; not those that others show."""
    released = settlements.c.turn_id.is_not(None)
    statement = (
        select(cards, *_ADDRESS, released.label("released"))
        .join(conversations, conversations.c.id == cards.c.conversation_id)
        .outerjoin(settlements, settlements.c.turn_id == cards.c.turn_id)
        .where(
            *_IS_WANTED,
            cards.c.not_before <= db_now(),
            or_(cards.c.urgent, released, cards.c.shown_at <= db_now() - min_interval_s),
            ~held_by_others(_THING, owner),
        )
        .order_by(released.desc(), cards.c.urgent.desc(), cards.c.shown_at)
        .limit(limit)
    )
    return list((await tx.execute(statement)).all())


def due_in(owner: Any, min_interval_s: Any, *also: Any) -> Any:
    """Seconds until a card of which this holds also is to be shown: a scalar subquery, null when none is."""
    c = cards.c
    hurried = or_(c.urgent, select(settlements.c.turn_id).where(settlements.c.turn_id == c.turn_id).exists())
    spaced = c.shown_at + min_interval_s
    at = case((hurried, c.not_before), (spaced > c.not_before, spaced), else_=c.not_before)
    wanted = select(func.min(at) - db_now()).where(*_IS_WANTED, ~held_by_others(_THING, owner), *also)
    quiet = select(c.id).where(*_quiet(HEARTBEAT_S)).exists()
    return select(case((quiet, 0.0), else_=wanted.scalar_subquery())).scalar_subquery()


async def next_due_in(
    tx: AsyncConnection, owner: str, min_interval_s: float, showing: Sequence[str] = ()
) -> float | None:
    """Seconds until a card other than these is to be shown; None when none waits."""
    others = cards.c.id.not_in(showing)
    seconds = (await tx.execute(select(due_in(owner, min_interval_s, others)))).scalar()
    return None if seconds is None else max(0.0, float(seconds))


def is_quiet_card_of(turn_id: Any) -> Any:
    """A condition: everything that was wanted of this turn's card has been shown."""
    return (
        select(cards.c.id)
        .where(cards.c.turn_id == turn_id, cards.c.given_up.is_(None), cards.c.wanted <= cards.c.shown)
        .exists()
    )


async def records(tx: AsyncConnection, card_id: str) -> CardRecords:
    """Everything that a card is made of."""
    card = (await tx.execute(select(cards).where(cards.c.id == card_id))).one()
    turn = (await tx.execute(select(turns).where(turns.c.id == card.turn_id))).one()
    settlement = (await tx.execute(select(settlements).where(settlements.c.turn_id == turn.id))).first()
    of_card = (
        await tx.execute(select(turns.c.id, turns.c.started_at).where(turns.c.card_id == card_id))
    ).all()
    same_card = [row.id for row in of_card]
    call_rows = (
        await tx.execute(
            select(calls)
            .where(calls.c.conversation_id == turn.conversation_id, calls.c.turn_id.in_(same_card))
            .order_by(calls.c.number)
        )
    ).all()
    analysis = select(turns.c.id).where(turns.c.analysis == turn.analysis)
    request_rows = (await tx.execute(select(requests).where(requests.c.turn_id.in_(analysis)))).all()
    steers = (
        await tx.execute(
            select(inbox)
            .where(
                inbox.c.conversation_id == turn.conversation_id,
                inbox.c.effect == "steer",
                inbox.c.turn_id.in_(analysis),
            )
            .order_by(inbox.c.seq)
        )
    ).all()
    people = (
        await tx.execute(
            select(inbox.c.author_id, inbox.c.author_name).where(
                inbox.c.conversation_id == turn.conversation_id, inbox.c.author_name.is_not(None)
            )
        )
    ).all()
    at = float((await tx.execute(select(db_now()))).scalar_one())
    stop_by, steer_by = await _asked_by(tx, turn) if settlement is None else (None, None)
    return CardRecords(
        card, turn, settlement, list(call_rows), list(request_rows), list(steers), at,
        {person.author_id: person.author_name for person in people},
        frozenset(same_card), min(row.started_at for row in of_card), stop_by, steer_by,
    )  # fmt: skip


async def _asked_by(tx: AsyncConnection, turn: Row[Any]) -> tuple[str | None, str | None]:
    """Who asked to stop this running turn, and who wrote what it has not read yet."""
    stop = select(tombstones.c.by).where(tombstones.c.turn_id == turn.id).order_by(tombstones.c.inbox_seq)
    steer = (
        select(inbox.c.author_id)
        .where(
            inbox.c.conversation_id == turn.conversation_id,
            inbox.c.fate == Fate.WAITING,
            inbox.c.effect == Effect.STEER,
        )
        .order_by(inbox.c.seq)
    )
    return (await tx.execute(stop.limit(1))).scalar(), (await tx.execute(steer.limit(1))).scalar()


async def begin_post(tx: AsyncConnection, card_id: str) -> None:
    """Mark that the card is about to be posted: after a lost answer it is looked for, not posted again."""
    await tx.execute(
        update(cards)
        .where(cards.c.id == card_id, cards.c.posting_since.is_(None))
        .values(posting_since=db_now())
    )


async def shown(
    tx: AsyncConnection,
    card_id: str,
    owner: str,
    *,
    revision: int,
    ref: str,
    digest: str,
    turn_id: str,
    released: bool,
) -> bool:
    """The platform has taken this state of the card.

    False when the claim had gone to another process meanwhile: then what this one showed last may cover a
    newer state, and the card is asked for once more.
    """
    if not await still_holds(tx, thing(card_id), owner):
        await tx.execute(
            update(cards)
            .where(cards.c.id == card_id)
            .values(wanted=cards.c.wanted + 1, shown_digest=None, urgent=True, not_before=0)
        )
        return False
    await tx.execute(
        update(cards)
        .where(cards.c.id == card_id)
        .values(
            shown=revision, message_ref=ref, posting_since=None, shown_digest=digest, shown_at=db_now(),
            tries=0, not_before=0,
        )
    )  # fmt: skip
    await tx.execute(
        update(cards).where(cards.c.id == card_id, cards.c.wanted == revision).values(urgent=False)
    )
    # Not those to which the card was handed on while this was on its way.
    number = select(turns.c.number).where(turns.c.id == turn_id).scalar_subquery()
    until = turns.c.number <= number if released else turns.c.number < number
    named = select(turns.c.id).where(turns.c.card_id == card_id, until)
    await tx.execute(
        update(settlements)
        .where(settlements.c.turn_id.in_(named), settlements.c.card_released_at.is_(None))
        .values(card_released_at=db_now())
    )
    return True


async def try_later(tx: AsyncConnection, card_id: str, seconds: float, *, not_sent: bool) -> None:
    """The platform did not take it; `not_sent` says that surely nothing was posted."""
    values: dict[str, Any] = {"not_before": db_now() + seconds, "tries": cards.c.tries + 1}
    if not_sent:
        values["posting_since"] = None
    await tx.execute(update(cards).where(cards.c.id == card_id).values(**values))


async def found(tx: AsyncConnection, card_id: str, ref: str) -> None:
    """A post whose answer was lost had arrived."""
    await tx.execute(
        update(cards)
        .where(cards.c.id == card_id)
        .values(message_ref=ref, posting_since=None, wanted=cards.c.wanted + 1, not_before=0)
    )


HEARTBEAT_S = 15.0
"""A live card is shown anew so often though nothing changed, so that people see that it lives."""


async def is_heartbeat_due(tx: AsyncConnection) -> bool:
    """Whether a live card has not been shown for so long."""
    return (await tx.execute(select(cards.c.id).where(*_quiet(HEARTBEAT_S)).limit(1))).first() is not None


async def heartbeat(tx: AsyncConnection) -> None:
    """Ask for every live card that has not been shown for so long."""
    await tx.execute(update(cards).where(*_quiet(HEARTBEAT_S)).values(wanted=cards.c.wanted + 1))


def _quiet(every_s: float) -> tuple[Any, ...]:
    live = select(conversations.c.id).where(conversations.c.active_turn == cards.c.turn_id).exists()
    return (
        live,
        cards.c.message_ref.is_not(None),
        cards.c.given_up.is_(None),
        cards.c.shown >= cards.c.wanted,
        cards.c.shown_at <= db_now() - every_s,
    )


async def post_anew(tx: AsyncConnection, card_id: str) -> None:
    """The card's message is gone or cannot be changed: the next try posts another one."""
    await tx.execute(
        update(cards)
        .where(cards.c.id == card_id)
        .values(
            message_ref=None, posting_since=None, wanted=cards.c.wanted + 1, shown_digest=None,
            posted_anew=cards.c.posted_anew + 1,
        )
    )  # fmt: skip


async def give_up(tx: AsyncConnection, card_id: str, why: str, *, not_sent: bool = False) -> None:
    """The platform takes it no more; the record says why. `not_sent` says that surely nothing was posted."""
    values: dict[str, Any] = {"given_up": why[:200]}
    if not_sent:
        values["posting_since"] = None
    await tx.execute(update(cards).where(cards.c.id == card_id).values(**values))


async def due_again(tx: AsyncConnection, within_s: float) -> int:
    """The platform takes cards again: what would be tried within so long is due now. Returns how many."""
    result = await tx.execute(
        update(cards)
        .where(
            cards.c.wanted > cards.c.shown,
            cards.c.given_up.is_(None),
            cards.c.not_before > db_now(),
            cards.c.not_before <= db_now() + within_s,
        )
        .values(not_before=0)
    )
    return result.rowcount


async def sweep(tx: AsyncConnection, grace_s: float) -> int:
    """Ask again for every card that is still live so long after its turn's settle; returns how many."""
    late = select(settlements.c.turn_id).where(
        settlements.c.card_released_at.is_(None), settlements.c.settled_at < db_now() - grace_s
    )
    result = await tx.execute(
        update(cards)
        .where(cards.c.turn_id.in_(late), cards.c.given_up.is_(None), cards.c.wanted <= cards.c.shown)
        .values(wanted=cards.c.shown + 1, urgent=True)
    )
    return result.rowcount


async def left_behind(tx: AsyncConnection, conversation_id: str) -> list[str]:
    """Cards of ended turns that were given up while their message still stands."""
    of_conversation = select(turns.c.id).where(turns.c.conversation_id == conversation_id)
    statement = (
        select(cards.c.id)
        .join(settlements, settlements.c.turn_id == cards.c.turn_id)
        .where(
            cards.c.turn_id.in_(of_conversation),
            cards.c.given_up.not_like(f"{GONE}%"),
            settlements.c.card_released_at.is_(None),
        )
    )
    return list((await tx.execute(statement)).scalars())


async def reopen(tx: AsyncConnection, card_ids: list[str]) -> None:
    """Their place takes cards again: one more try for each."""
    await tx.execute(
        update(cards)
        .where(cards.c.id.in_(card_ids))
        .values(given_up=None, wanted=cards.c.wanted + 1, urgent=True)
    )
