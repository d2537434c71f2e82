"""The cast: who can speak on the console. Rights follow from flags, as on every platform."""

from __future__ import annotations

from dataclasses import dataclass

from core.arrivals import Author


@dataclass(frozen=True, slots=True)
class Person:
    """Somebody whom the visitor can be. `about` says in a few words what to try as them."""

    author: Author
    title: str
    about: str

    @property
    def id(self) -> str:
        """The id, also used in addresses."""
        return self.author.id

    @property
    def name(self) -> str:
        """The name as it is shown."""
        return self.author.name


CAST: tuple[Person, ...] = (
    Person(Author("ana", "Ana"), "on call", "Starts the analysis, and is its initiator."),
    Person(Author("ben", "Ben"), "responder", "Named in the configuration as a responder."),
    Person(Author("mia", "Mia"), "member", "Any member of the company may steer."),
    Person(Author("gus", "Gus", is_guest=True), "guest", "A guest may read along, and is refused."),
    Person(
        Author("eve", "Eve", is_external=True), "other company", "Somebody of another company is refused."
    ),
)
RESPONDERS = frozenset({"ben"})
BY_ID = {person.id: person for person in CAST}
FIRST = CAST[0]


def person(person_id: str | None) -> Person:
    """The person of this id, else the first."""
    return BY_ID.get(person_id or "", FIRST)


def author(user_id: str) -> Author:
    """The console's record of an author; whoever is not in it is a stranger."""
    known = BY_ID.get(user_id)
    return known.author if known else Author(user_id, user_id, is_external=True)
