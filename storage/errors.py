"""What a transaction may be refused for. Expected, and not a fault."""

from core.signals import Held


class Fenced(Exception):
    """The conversation's lease has moved on; whoever holds the old token must leave quietly."""


class Signalled(Exception):
    """A steer or stop was decided before this write."""

    def __init__(self, held: Held) -> None:
        super().__init__(f"{held.signal} by {held.by}")
        self.held = held


class AlreadySettled(Exception):
    """The turn has its settle record."""


class SchemaOutdated(Exception):
    """The database is not at the schema that this program needs."""


class DatabaseUnusable(Exception):
    """The database cannot be opened; the message is one line for people that names the mend.

    `away` says that it could not be reached, and may be later.
    """

    def __init__(self, message: str, *, away: bool = False) -> None:
        super().__init__(message)
        self.away = away


class DatabaseTrouble(Exception):
    """The database failed us, and not what was asked of it; the message is its one-line cause."""


class DatabaseAway(DatabaseTrouble):
    """The database could not be reached for as long as anybody may wait; nothing was done."""


class CommitUnknown(DatabaseTrouble):
    """The answer to a COMMIT was lost: the transaction may have been done. Read the records again."""
