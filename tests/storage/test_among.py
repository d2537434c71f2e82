"""A value is among those of a query: the right rows, each looked up."""

from __future__ import annotations

import re
from typing import Any

from sqlalchemy import Select, select, text
from sqlalchemy.ext.asyncio import AsyncConnection

from core.arrivals import Thread
from storage.among import among
from storage.tables import conversations, inbox
from tests.storage.world import World

HEARD = select(conversations.c.id).where(
    among(conversations.c.id, select(inbox.c.conversation_id).where(inbox.c.text == "heard")),
    conversations.c.active_turn.is_(None),
)


async def ids(world: World, statement: Select[Any]) -> set[str]:
    async def query(tx: AsyncConnection) -> set[str]:
        return {str(found) for found in (await tx.execute(statement)).scalars()}

    return await world.database.read(query)


async def test_a_row_is_found_when_its_value_is_among_them_and_only_then(world: World) -> None:
    other = World(world.database, Thread("slack", "T1", "C1", "2.2"))
    await world.hears("heard")
    await other.hears("said", key="slack:C1:other")
    assert await ids(world, HEARD) == {world.id}
    nothing = select(inbox.c.conversation_id).where(inbox.c.text == "never said")
    assert await ids(world, select(conversations.c.id).where(among(conversations.c.id, nothing))) == set()
    beside = select(conversations.c.id).where(
        ~among(conversations.c.id, select(inbox.c.conversation_id).where(inbox.c.text == "heard"))
    )
    assert await ids(world, beside) == {other.id}


async def test_the_rows_are_looked_up_and_their_table_is_not_walked(world: World) -> None:
    async def plan(tx: AsyncConnection) -> list[str]:
        if not world.database.is_sqlite:
            await tx.execute(text("set local enable_seqscan = off"))  # small tables are walked by right
        explain = "explain query plan " if world.database.is_sqlite else "explain "
        made: Any = HEARD.compile(dialect=tx.dialect, compile_kwargs={"literal_binds": True})
        return [str(row) for row in (await tx.execute(text(f"{explain}{made}"))).all()]

    found = await world.database.read(plan)
    assert [line for line in found if re.search(r"(SCAN|Seq Scan on) conversations", line)] == [], found
    assert any(re.search(r"(SEARCH|Scan using \w+ on|Scan on) conversations", line) for line in found), found
