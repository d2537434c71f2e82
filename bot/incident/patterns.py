"""Regular expressions and label matchers that callers send: what could run for ever is refused."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache

LONGEST = 1_000
_NESTED = re.compile(r"[+*}]\)+[+*{]|\|[^()]*\)[+*{]")  # (a+)+ and (a|b)*: can take exponential time here


class BadPattern(ValueError):
    """The expression cannot be used; the message says why."""


@lru_cache(maxsize=256)
def compiled(text: str) -> re.Pattern[str]:
    """A pattern in the part of RE2 that Python shares."""
    if len(text) > LONGEST:
        raise BadPattern(f"error parsing regexp: longer than {LONGEST} characters")
    if _NESTED.search(text):
        raise BadPattern(f"error parsing regexp: repetition of a repetition is not supported here: `{text}`")
    try:
        return re.compile(text, re.DOTALL)
    except (re.error, OverflowError, RecursionError) as error:
        raise BadPattern(f"error parsing regexp: {error}: `{text}`") from None


@dataclass(frozen=True)
class Matcher:
    """One condition on a label; a label that is missing counts as empty."""

    label: str
    how: str
    value: str

    def holds(self, labels: Mapping[str, str]) -> bool:
        """Whether a series with these labels is meant."""
        return self.test(labels.get(self.label, ""))

    @property
    def test(self) -> Callable[[str], bool]:
        """The condition on one value."""
        if self.how == "=":
            return lambda found: found == self.value
        if self.how == "!=":
            return lambda found: found != self.value
        pattern = compiled(self.value)
        if self.how == "=~":
            return lambda found: pattern.fullmatch(found) is not None
        return lambda found: pattern.fullmatch(found) is None
