"""Who wrote a message is decided least right first, and a conversation's id is its address."""

from itertools import product

import pytest

from core.arrivals import PEOPLE_SOURCES, Author, AuthorRole, Source, Thread, role_of

RESPONDERS = frozenset({"U-responder", "U-both"})


def role(user: str, **marks: bool) -> AuthorRole:
    return role_of(Author(user, "Ana", **marks), initiator="U-both", responders=RESPONDERS)


@pytest.mark.parametrize(
    "user, expected",
    [
        ("U-other", AuthorRole.MEMBER),
        ("U-responder", AuthorRole.RESPONDER),
        ("U-both", AuthorRole.INITIATOR),
    ],
)
def test_a_member_has_the_role_that_the_conversation_gives(user: str, expected: AuthorRole) -> None:
    assert role(user) is expected


@pytest.mark.parametrize("user", ["U-other", "U-responder", "U-both"])
def test_no_role_in_a_conversation_makes_up_for_a_lack_of_right(user: str) -> None:
    assert role(user, is_guest=True) is AuthorRole.GUEST
    assert role(user, is_external=True) is AuthorRole.EXTERNAL
    assert role(user, is_bot=True) is AuthorRole.BOT
    assert role(user, is_deactivated=True) is AuthorRole.DEACTIVATED


def test_of_several_marks_the_least_right_decides() -> None:
    order = ("is_deactivated", "is_bot", "is_external", "is_guest")
    roles = (AuthorRole.DEACTIVATED, AuthorRole.BOT, AuthorRole.EXTERNAL, AuthorRole.GUEST)
    for marks in product((True, False), repeat=4):
        first = next((r for r, held in zip(roles, marks, strict=True) if held), AuthorRole.MEMBER)
        assert role("U-other", **dict(zip(order, marks, strict=True))) is first


def test_without_an_initiator_nobody_is_one() -> None:
    assert role_of(Author("U1", "Ana"), initiator=None, responders=frozenset()) is AuthorRole.MEMBER


def test_a_conversation_is_found_by_its_address_alone() -> None:
    assert Thread("slack", "T1", "C1", "1.2").conversation_id == "slack:T1:C1:1.2"


def test_people_speak_through_three_sources() -> None:
    assert {Source.MENTION, Source.THREAD_REPLY, Source.STOP_REQUEST} == PEOPLE_SOURCES
