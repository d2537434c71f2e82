"""What people's words change."""

import pytest

from bot.model.rehearsal.hypotheses import Hypothesis
from bot.model.rehearsal.picture import Picture
from bot.model.rehearsal.steering import course, hints
from bot.model.rehearsal.transcript import Said, read
from core.history import Message
from tests.bot.model.rehearsal.room import asked

H = Hypothesis


@pytest.mark.parametrize(
    "words, wanted, dropped",
    [
        ("look at what was deployed", {H.DEPLOY}, set()),
        ("could be the 14:05 rollout", {H.DEPLOY}, set()),
        ("ignore the deploy, look at the connection pool", {H.POOL}, {H.DEPLOY}),
        ("the deploy is fine; check the certs", {H.CERTIFICATE}, {H.DEPLOY}),
        ("it isn't the pool", set(), {H.POOL}),
        ("don't look at the certificate but at noisy neighbours", {H.NEIGHBOUR}, {H.CERTIFICATE}),
        ("some upstream provider?", {H.DEPENDENCY}, set()),
        ("false alarm I guess", {H.NOTHING}, set()),
        ("please hurry", set(), set()),
    ],
)
def test_words_name_causes_to_look_at_and_to_leave_out(
    words: str, wanted: set[Hypothesis], dropped: set[Hypothesis]
) -> None:
    found = hints(Said("Ben", "responder", words, True, 1), Picture(()))
    assert {each.hypothesis for each in found if not each.dropped and each.hypothesis} == wanted
    assert {each.hypothesis for each in found if each.dropped and each.hypothesis} == dropped


def test_the_database_is_known_by_its_usual_names_before_any_fact_named_it() -> None:
    found = hints(Said("Ben", "responder", "look at postgres", True, 1), Picture(()))
    assert [each.service for each in found] == ["database"]


def test_the_later_of_two_people_wins_but_not_over_the_initiator() -> None:
    room = asked()
    room.says("check the pool", "Ben", "responder")
    room.says("forget the pool", "Cem", "responder")
    assert H.POOL in _course(room.messages)[1]
    room = asked()
    room.says("check the pool")
    room.says("forget the pool", "Cem", "responder")
    assert _course(room.messages) == ([H.POOL], frozenset())


def _course(messages: list[Message]) -> tuple[list[Hypothesis], frozenset[Hypothesis]]:
    transcript = read(messages)
    found = course(transcript, Picture(transcript.made))
    return list(found.wanted), found.dropped
