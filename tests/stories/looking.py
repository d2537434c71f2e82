"""Looking into a room's records and requests: what was stored of a thread, and what the model was told."""

from __future__ import annotations

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncConnection

from storage import reports
from storage.tables import conversations
from tests.stories.room import Room, eventually
from tests.stories.telling import messages


async def known_threads(room: Room) -> list[str]:
    """Every conversation that was ever stored."""

    async def ids(tx: AsyncConnection) -> list[str]:
        return list((await tx.execute(select(conversations.c.id))).scalars())

    return await (await room.records()).read(ids)


async def until_stored(room: Room, thread: str, count: int) -> None:
    """Wait until so many messages of a thread are stored."""

    async def stored() -> bool:
        return len(await messages(room, thread)) >= count

    await eventually(stored, timeout=10)


async def until_all_decided(room: Room, thread: str, count: int) -> None:
    """Wait until so many messages of a thread have an effect."""

    async def decided() -> bool:
        return sum(bool(m["effect"]) for m in await messages(room, thread)) >= count

    await eventually(decided, timeout=10)


async def until_fates(room: Room, conversation_id: str, *fates: str) -> None:
    """Wait until the messages of a conversation have met exactly these fates."""

    async def met() -> bool:
        found = await reports.conversation(await room.records(), conversation_id)
        return found is not None and [m["fate"] for m in found["messages"]] == list(fates)

    await eventually(met, timeout=10)


def told(room: Room, words: str) -> int:
    """How often the last request says it in texts of the user's side."""
    return sum(said.count(words) for said in room.model.last_request.user_texts())
