"""The table of endings is the design's, and total."""

import pytest

from core.reasons import ENDS_FOR_GOOD, REASONS, Reason, goes_on, needs_final_event

DESIGN = """
completed   | yes | required | -     | -     | success     | idle
empty       | no  | none     | spent | yes   | no answer   | idle_with_note
steered     | -   | none     | never | never | not written | next_turn
drained     | -   | none     | never | never | not written | resumed
dispatched  | -   | none     | never | never | not written | wakes
awaiting    | -   | none     | never | never | not written | wakes
parked      | -   | none     | never | never | not written | wakes
stopped     | -   | none     | never | never | stopped     | idle
over_budget | no  | none     | never | -     | failed      | idle_with_note
failed      | no  | none     | -     | -     | failed      | idle_with_note
stale       | -   | none     | never | -     | not written | resumed
"""
SAYS = {"yes": True, "no": False, "never": False, "-": None}


def test_every_reason_has_its_row() -> None:
    assert set(REASONS) == set(Reason)


@pytest.mark.parametrize("line", DESIGN.strip().splitlines())
def test_the_row_is_the_designs(line: str) -> None:
    reason, answered, final, remedy, diagnosis, automation, afterwards = (c.strip() for c in line.split("|"))
    row = REASONS[Reason(reason)]
    assert row.answered is SAYS[answered]
    assert row.final_event is (final == "required")
    assert row.remediation is (remedy == "spent")
    assert row.diagnosis is SAYS[diagnosis]
    assert (row.automation.value, row.afterwards.value) == (automation, afterwards)


def test_only_a_completed_turn_names_a_final_message() -> None:
    assert {reason for reason in Reason if needs_final_event(reason)} == {Reason.COMPLETED}


def test_only_a_completed_turn_has_answered() -> None:
    assert {reason for reason in Reason if REASONS[reason].answered} == {Reason.COMPLETED}


def test_what_goes_on_has_not_ended_for_good() -> None:
    assert {reason for reason in Reason if goes_on(reason)} == {Reason.STEERED, Reason.DRAINED, Reason.STALE}
    assert not any(goes_on(reason) for reason in ENDS_FOR_GOOD)


def test_a_cut_is_never_booked_as_an_answer_that_failed_to_come() -> None:
    for reason in (Reason.STEERED, Reason.DRAINED, Reason.DISPATCHED, Reason.AWAITING, Reason.PARKED):
        assert REASONS[reason].answered is None
        assert REASONS[reason].diagnosis is False
