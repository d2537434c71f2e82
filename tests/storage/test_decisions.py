"""What a message does is fixed once, under the lock of its conversation."""

from __future__ import annotations

import pytest

from core.arrivals import Addressed, AuthorRole, Edit, Marker, Source
from core.policy import Effect
from core.signals import Held, Signal
from storage import signals
from storage import tables as t
from storage.errors import Signalled
from tests.storage.world import READ, WRITE, World, booking


async def seq_of_signals(world: World) -> int:
    return int((await world.conversation()).signal_seq)


async def test_a_message_is_decided_once(world: World) -> None:
    seq = await world.hears()
    assert await world.decides(seq) is Effect.START
    assert await world.decides(seq) is None


async def test_the_decision_records_effect_rule_role_and_name(world: World) -> None:
    row = await world.one(t.inbox, seq=await world.says())
    assert (row.effect, row.rule, row.role, row.author_name) == (
        "start",
        "people_idle",
        "initiator",
        "Ana A.",
    )
    assert row.decided_at is not None


async def test_the_first_wish_makes_its_writer_the_initiator(world: World) -> None:
    await world.says(by="Gil")
    assert (await world.conversation()).initiator is None
    await world.says(by="Ben")
    await world.says(by="Ana")
    assert (await world.conversation()).initiator == "Ben"


# --- running and idle -----------------------------------------------------------------------------------


async def test_a_message_before_the_first_turn_joins_it(world: World) -> None:
    await world.says()
    assert await world.decides(await world.hears("and search?", "Ben")) is Effect.STEER
    turn = await world.starts()
    assert {row.fate for row in await world.rows(t.inbox)} == {"read"}
    assert len(turn.messages) == 1


async def test_while_a_turn_runs_a_message_steers_and_raises_the_signal(world: World) -> None:
    turn = await world.begins()
    before = await seq_of_signals(world)
    assert await world.decides(await world.hears("look at the deploy", "Ben")) is Effect.STEER
    assert await seq_of_signals(world) == before + 1
    held = await world.database.read(signals.first_held, turn.fence)
    assert held is not None
    assert (held.signal.value, held.by) == ("steer", "Ben")


async def test_what_waits_or_is_read_along_raises_no_signal(world: World) -> None:
    turn = await world.begins()
    before = await seq_of_signals(world)
    await world.queues()
    await world.says("hey Cleo", "Ben", source=Source.THREAD_REPLY, addressed=Addressed.PERSON)
    await world.says("me too", "Gil")
    assert await seq_of_signals(world) == before
    assert await world.database.read(signals.first_held, turn.fence) is None


async def test_between_two_turns_of_one_analysis_it_still_runs(world: World) -> None:
    turn = await world.begins()
    await world.loses_its_worker()
    await world.reaps()
    assert await world.decides(await world.hears("look at the deploy", "Ben")) is Effect.STEER
    assert turn is not None


async def test_after_the_end_a_message_starts_anew(world: World) -> None:
    turn = await world.begins()
    await world.settles(turn, bookings=[booking()])
    assert await world.decides(await world.hears("and search?", "Ben")) is Effect.START


@pytest.mark.parametrize(
    "marker, by, receipt, fate",
    [
        (Marker.NONE, "Ben", "eyes", "waiting"),
        (Marker.LATER, "Ben", "clock4", "waiting"),
        (Marker.NONE, "Gil", None, "denied"),
    ],
)
async def test_the_writer_sees_at_once_what_became_of_it(
    world: World, marker: Marker, by: str, receipt: str | None, fate: str
) -> None:
    await world.begins()
    row = await world.one(t.inbox, seq=await world.says("x", by, marker=marker))
    assert (row.receipt, row.fate) == (receipt, fate)


async def test_a_steer_asks_for_the_card_of_the_running_turn(world: World) -> None:
    await world.begins()
    before = (await world.one(t.cards)).wanted
    await world.says("look", "Ben")
    assert (await world.one(t.cards)).wanted == before + 1


# --- refusals -------------------------------------------------------------------------------------------


async def test_a_refusal_is_told_once_for_each_person_and_thread(world: World) -> None:
    await world.begins()
    await world.says("let me in", "Gil")
    await world.says("please", "Gil")
    await world.says("me too", "Guy")
    await world.decides(await world.hears("and me", "Guy"), AuthorRole.GUEST)
    rows = [row for row in await world.rows(t.outbox) if row.kind == "private"]
    assert [row.to_user for row in rows] == ["Gil", "Guy"]


async def test_a_bot_is_refused_silently(world: World) -> None:
    await world.begins()
    assert await world.decides(await world.hears("beep", "Robo")) is Effect.DENY
    assert await world.posts() == []


async def test_a_writer_who_could_not_be_looked_up_is_told_that(world: World) -> None:
    seq = await world.hears(by="Who")
    await world.decides(seq, AuthorRole.EXTERNAL, told="I could not look up who you are.")
    assert await world.posts("private") == ["I could not look up who you are."]


# --- stops ----------------------------------------------------------------------------------------------


async def test_a_stop_of_a_running_turn_names_it_and_makes_its_card_urgent(world: World) -> None:
    turn = await world.begins()
    seq = await world.stops()
    tomb = await world.one(t.tombstones)
    assert (tomb.inbox_seq, tomb.turn_id, tomb.by) == (seq, turn.fence.turn_id, "Ana")
    assert (await world.one(t.cards)).urgent
    held = await world.database.read(signals.first_held, turn.fence)
    assert held is not None
    assert held.signal.value == "stop"


async def test_a_stop_before_the_start_turns_what_waits_into_context(world: World) -> None:
    seq = await world.says()
    assert (await world.one(t.inbox, seq=await world.stops())).effect == "stop"
    assert await world.fate(seq) == "context"
    assert await world.claims() is None
    assert (await world.one(t.tombstones)).turn_id is None


async def test_a_stop_holds_for_a_message_that_was_stored_before_it_and_decided_after(world: World) -> None:
    await world.says()
    late = await world.hears("and search?", "Ben")
    await world.stops()
    assert await world.decides(late) is Effect.CONTEXT
    assert (await world.one(t.inbox, seq=late)).rule == "stopped"
    assert await world.claims() is None


async def test_the_same_holds_when_the_stop_met_a_running_turn(world: World) -> None:
    turn = await world.begins()
    late = await world.hears("and search?", "Ben")
    await world.stops()
    assert await world.decides(late) is Effect.CONTEXT
    await world.cut(turn, Signal.STOP)
    assert await world.claims() is None


async def test_an_edit_does_not_carry_a_message_past_a_stop(world: World) -> None:
    turn = await world.begins()
    decided = await world.says("look at search", "Ben")
    late = await world.hears("and the disk", "Cleo")
    await world.stops()
    edits = [Edit(world.thread, f"slack:C1:{number}", f"edit {number}", "edited") for number in (2, 3)]
    of_decided, of_late = await world.stores(*edits)
    assert of_decided.seq is not None
    assert of_late.seq is not None
    assert decided < late < of_decided.seq
    assert await world.decides(of_late.seq) is Effect.CONTEXT
    await world.cut(turn, Signal.STOP)
    assert await world.fate(of_decided.seq) == "context"
    assert await world.claims() is None


async def test_a_stop_never_touches_a_later_message(world: World) -> None:
    await world.says()
    await world.stops()
    later = await world.says("go on with search", "Ben")
    assert await world.fate(later) == "waiting"
    turn = await world.starts()
    assert await world.database.read(signals.first_held, turn.fence) is None


async def test_a_stop_that_is_decided_after_a_later_message_was_read_is_too_late(world: World) -> None:
    turn = await world.begins()
    stop = await world.hears("!stop", source=Source.STOP_REQUEST)
    await world.settles(turn, bookings=[booking()])
    await world.says("and search?", "Ben")
    turn = await world.starts()
    assert await world.decides(stop) is Effect.DENY
    assert await world.database.read(signals.first_held, turn.fence) is None


async def test_a_stop_when_all_has_ended_is_answered_each_time(world: World) -> None:
    turn = await world.begins()
    await world.settles(turn)
    for _ in range(2):
        row = await world.one(t.inbox, seq=await world.stops(turn_id=turn.fence.turn_id))
        assert (row.effect, row.rule) == ("deny", "stop_ended")
    assert len(await world.posts("private")) == 2


async def test_the_button_of_an_earlier_turn_of_the_same_analysis_stops_the_running_one(world: World) -> None:
    first = await world.begins()
    await world.loses_its_worker()
    await world.reaps()
    second = await world.starts()
    await world.stops(turn_id=first.fence.turn_id)
    assert (await world.one(t.tombstones)).turn_id == second.fence.turn_id


async def test_the_button_of_an_analysis_that_ended_does_not_stop_the_next_one(world: World) -> None:
    first = await world.begins()
    await world.settles(first, bookings=[booking()])
    await world.says("and search?", "Ben")
    await world.starts()
    row = await world.one(t.inbox, seq=await world.stops(turn_id=first.fence.turn_id))
    assert (row.effect, row.rule) == ("deny", "stop_ended")


async def test_a_stop_between_two_turns_ends_the_work_and_leaves_no_batch_open(world: World) -> None:
    turn = await world.begins()
    await world.commits(turn, ("a", READ), ("w", WRITE), bookings=[booking()])
    await world.marks_started(turn, "w")
    await world.loses_its_worker()
    await world.reaps()
    await world.stops()
    turn = await world.starts()
    assert turn.open_calls == ()
    assert {row.outcome for row in await world.rows(t.calls)} == {"unknown"}
    assert {row.closed for row in await world.rows(t.calls)} == {True}
    assert await world.probes(turn) == Held(Signal.STOP, "Ana")
    await world.cut(turn, Signal.STOP, by="Ana")
    assert await world.reasons() == ["stale", "stopped"]
    assert await world.claims() is None


async def test_what_is_written_after_such_a_stop_is_left_for_the_next_turn(world: World) -> None:
    turn = await world.begins()
    await world.cut(turn, Signal.DRAIN)
    await world.stops()
    later = await world.says("something else", "Ben")
    stopped = await world.starts()
    assert await world.fate(later) == "waiting"
    await world.cut(stopped, Signal.STOP, by="Ana")
    assert await world.fate(later) == "waiting"
    await world.starts()
    assert await world.fate(later) == "read"


async def test_what_comes_after_such_a_stop_runs_nothing_of_it_again(world: World) -> None:
    turn = await world.begins()
    await world.commits(turn, ("a", READ))
    await world.loses_its_worker()
    await world.reaps()
    await world.stops()
    await world.says("something else", "Ben")
    assert (await world.starts()).open_calls == ()


# --- gathering ------------------------------------------------------------------------------------------


async def test_after_a_cut_every_message_puts_the_next_turn_off_but_not_for_ever(world: World) -> None:
    await world.says()
    turn = await world.starts(gather_s=1.0)
    await world.says("look", "Ben")
    await world.cut(turn, Signal.STEER)
    now = await world.now()
    assert await world.claims() is None
    await world.change(t.conversations, {"id": world.id}, gathering_since=now - 5)
    await world.says("and there", "Ben")
    assert (await world.conversation()).not_before == pytest.approx(now + 1.0, abs=0.5)
    await world.change(t.conversations, {"id": world.id}, gathering_since=now - 9.9)
    await world.says("and there too", "Ben")
    assert (await world.conversation()).not_before == pytest.approx(now + 0.1, abs=0.05)


async def test_a_message_decided_after_the_commit_was_prepared_refuses_it(world: World) -> None:
    turn = await world.begins()
    await world.says("look", "Ben")
    with pytest.raises(Signalled):
        await world.commits(turn, ("a", READ))
    assert await world.rows(t.calls) == []
