"""Errors at the edges, sorted by what the caller must do."""


class Temporary(Exception):
    """Try again, not before `retry_after_s` seconds where that is known."""

    def __init__(self, message: str, retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class Unreachable(Temporary):
    """The platform is away for everything: what was tried is not to blame, and nobody would see it twice."""


class Limited(Temporary):
    """Everybody must rest for so long. Whoever then stands first in line goes first: wait there."""


class OutcomeUnknown(Temporary):
    """The call may have taken effect: its answer was lost. Look before repeating it."""


class Permanent(Exception):
    """Trying again will not help. `code` is the platform's own word for it."""

    def __init__(self, message: str, code: str = "") -> None:
        super().__init__(message)
        self.code = code


class Gone(Permanent):
    """The message does not exist (any more)."""


class Unchangeable(Permanent):
    """The message stands, and the platform lets us change it no more."""


class Closed(Permanent):
    """The place takes nothing from us: it is archived, locked or deleted, or we were removed from it."""


class Rejected(Permanent):
    """The platform takes nothing from us until somebody mends the installation; what we owe waits."""


class Unusable(Exception):
    """A setting cannot be used; one line for people: what, what is wrong, what would be right."""
