"""The judge of the fleet catches each wrong that it should, and nothing else."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest

from tests.fleet import laws
from tests.fleet.faults import FAULTS
from tests.fleet.laws import CardShown, Delivered, Evidence, Law, Row, TurnRow, Written
from tests.fleet.phases import CHOICES, Phase
from tests.fleet.run import Outcome
from tests.fleet.table import summary, table

THREAD, FIRST, SECOND = "100.1", "turn_1", "turn_2"
WORDS = "incident 1: why is service 1 slow?"


def settle(turn: str, reason: str, thread: str = THREAD) -> dict[str, Any]:
    return {"turn_id": turn, "thread": thread, "reason": reason}


def started(call: str, tool: str = "restart", service: str = "service 1") -> dict[str, Any]:
    return {"tool": tool, "call_id": call, "args": {"service": service}}


def well() -> Evidence:
    """An analysis that was taken over by another process once, and to which nothing bad came of it."""
    row = Row(FIRST, "turns turn_1", "as it was")
    return Evidence(
        written=[Written(1, WORDS, THREAD)],
        delivered=[Delivered(THREAD, True)],
        stored=[f"slack:T1:C1:{THREAD}"],
        told=[["<message>", f"<message from Ana>\n{WORDS}\n</message>"]],
        begun=[started("call_1"), started("call_2", service="service 2")],
        turns=[
            TurnRow(FIRST, THREAD, 1, "host:1", None, "card_1"),
            TurnRow(SECOND, THREAD, 2, "host:2", FIRST, "card_1"),
        ],
        settles=[settle(FIRST, "stale"), settle(SECOND, "completed")],
        cards=[
            CardShown("200.1", 1.0, FIRST, "live", "member 0"),
            CardShown("200.1", 5.0, SECOND, "live", "member 1"),
            CardShown("200.1", 9.0, SECOND, "released", "member 1"),
        ],
        answers=[(SECOND, "event_1", 1)],
        exits=[("member 0", 0, 0)],
        zombie="member 0",
        woke_at=8.0,
        rows_when_it_woke=[row],
        rows_at_rest=[row],
    )


def shown(*more: CardShown) -> Callable[[Evidence], Evidence]:
    return lambda seen: replace(seen, cards=[*seen.cards, *more])


PLANTS: Mapping[Law, Callable[[Evidence], Evidence]] = {
    laws.what_is_acknowledged_is_stored: lambda seen: replace(seen, stored=[]),
    laws.what_people_write_is_received: lambda seen: replace(seen, delivered=[Delivered(THREAD, False)]),
    laws.what_people_write_reaches_the_model: lambda seen: replace(seen, told=[["something else"]]),
    laws.every_analysis_completes: lambda seen: replace(seen, settles=seen.settles[:1]),
    laws.no_card_is_left_live: lambda seen: replace(seen, live=["200.1"]),
    laws.every_release_is_shown: lambda seen: replace(seen, cards=seen.cards[:2]),
    laws.nothing_is_told_twice: lambda seen: replace(seen, told=[[WORDS, WORDS]]),
    laws.a_side_effect_begins_once: lambda seen: replace(seen, begun=[*seen.begun, started("call_3")]),
    laws.an_answer_stands_once: lambda seen: replace(seen, answers=seen.answers * 2),
    laws.every_turn_settles_once: lambda seen: replace(seen, settles=[*seen.settles, seen.settles[0]]),
    laws.a_card_is_never_live_again: shown(CardShown("200.1", 10.0, SECOND, "live", "member 1")),
    laws.a_zombie_shows_at_most_what_was_under_way: shown(
        CardShown("200.1", 8.1, FIRST, "live", "member 0"), CardShown("200.1", 8.2, FIRST, "live", "member 0")
    ),
    laws.a_zombie_writes_nothing: lambda seen: replace(
        seen, rows_at_rest=[*seen.rows_at_rest, Row(FIRST, "transcript 3", "said too late")]
    ),
    laws.a_resumed_turn_goes_on_on_the_same_card: lambda seen: replace(
        seen, turns=[seen.turns[0], seen.turns[1]._replace(card="card_2")]
    ),
    laws.turns_follow_each_other: lambda seen: replace(seen, turns=seen.turns[1:]),
    laws.slack_has_no_complaint: lambda seen: replace(seen, slack=["called before Retry-After had passed"]),
    laws.the_model_refuses_nothing: lambda seen: replace(seen, refused=["tool_use without tool_result"]),
    laws.the_records_are_sound: lambda seen: replace(seen, records=["tokens_only_rise: turn_2"]),
    laws.nobody_is_surprised: lambda seen: replace(seen, tracebacks=["member 0: turn_lost"]),
    laws.who_ends_ends_as_promised: lambda seen: replace(seen, exits=[("member 0", 1, 0)]),
}


def test_nothing_is_wrong_where_all_is_well() -> None:
    assert laws.broken(well()) == []


def test_every_law_has_a_wrong_that_it_must_catch() -> None:
    assert set(PLANTS) == set(laws.LAWS)


@pytest.mark.parametrize("law", PLANTS, ids=lambda law: law.__name__)
def test_each_law_catches_its_wrong(law: Law) -> None:
    assert law(well()) == []
    assert law(PLANTS[law](well())) != []


@pytest.mark.parametrize(
    "wrong",
    [
        [started("call_1", service="service 3")],  # the same call, whatever it does
        [started("call_3", tool="hold_write"), started("call_4", tool="hold_write")],
    ],
    ids=["by its call", "by its deed"],
)
def test_a_side_effect_is_known_by_its_call_and_by_its_deed(wrong: list[dict[str, Any]]) -> None:
    seen = well()
    assert laws.a_side_effect_begins_once(replace(seen, begun=[*seen.begun, *wrong]))


def test_calls_without_side_effects_may_begin_again() -> None:
    again = [started("call_9", tool="hold"), started("call_9", tool="hold")]
    assert laws.a_side_effect_begins_once(replace(well(), begun=again)) == []


def test_a_row_that_a_zombie_changed_or_removed_is_a_write_too() -> None:
    row = well().rows_when_it_woke[0]
    changed = replace(well(), rows_at_rest=[row._replace(content="changed")])
    gone = replace(well(), rows_at_rest=[])
    assert laws.a_zombie_writes_nothing(changed)
    assert laws.a_zombie_writes_nothing(gone)


def test_one_call_that_was_under_way_may_arrive_late_and_only_from_who_was_frozen() -> None:
    late = CardShown("200.1", 8.5, FIRST, "live", "member 0")
    assert laws.broken(shown(late)(well())) == []
    assert laws.broken(shown(late._replace(sender="member 1"))(well()))
    assert laws.broken(shown(late, late._replace(at=8.6))(well()))


def test_an_answer_of_a_turn_that_was_not_completed_is_wrong() -> None:
    assert laws.an_answer_stands_once(replace(well(), answers=[(FIRST, "event_0", 1), *well().answers]))


def test_a_turn_without_a_settle_record_is_wrong() -> None:
    assert laws.every_turn_settles_once(replace(well(), settles=well().settles[:1]))


def test_a_resumed_turn_on_another_message_is_wrong_even_if_the_records_say_otherwise() -> None:
    seen = well()
    elsewhere = [seen.cards[0], *(card._replace(ts="300.1") for card in seen.cards[1:])]
    assert laws.a_resumed_turn_goes_on_on_the_same_card(replace(seen, cards=elsewhere))


# --- the matrix ---------------------------------------------------------------------------------------------


def test_a_run_in_which_nothing_completes_fails() -> None:
    assert Outcome("SIGKILL", Phase.IDLE, 1).failed
    assert not Outcome("SIGKILL", Phase.IDLE, 1, completed=1).failed


def test_a_run_that_goes_on_too_late_or_breaks_a_law_fails() -> None:
    assert Outcome("SIGKILL", Phase.IDLE, 1, completed=1, late=["turn_1"]).failed
    assert Outcome("SIGKILL", Phase.IDLE, 1, completed=1, broken=["a law"]).failed


def test_every_phase_but_idle_has_its_moments() -> None:
    assert set(CHOICES) == set(Phase) - {Phase.IDLE}


def test_faults_have_names_of_their_own_and_at_least_one_phase() -> None:
    assert len({fault.name for fault in FAULTS}) == len(FAULTS)
    assert all(fault.phases for fault in FAULTS)


def test_the_table_tells_what_was_lost_late_and_twice() -> None:
    chance = random.Random(1)
    times = [chance.uniform(0, 1) for _ in range(10)]
    some = [
        Outcome("SIGKILL", Phase.TOOLS, 1, completed=4, recovery_s=times),
        Outcome("SIGKILL", Phase.TOOLS, 2, completed=3, broken=["lost"], lost=2, twice=1, recovery_s=[1.5]),
    ]
    row = next(line for line in table(some).splitlines() if "SIGKILL" in line)
    assert (
        row == f"| SIGKILL | tools run | 2 | 1 | 7 | 11 | {sorted(times)[5]:.2f} | 1.50 | 1.50 | 2 | 2 | 1 |"
    )
    assert "2 runs, 1 ok, 1 failed; 7 analyses completed, 2 lost, 1 twice" in summary(some)
