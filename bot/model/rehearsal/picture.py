"""All facts so far, by the check that they come from."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from bot.model.rehearsal.deploys import Deploy, deploys
from bot.model.rehearsal.findings import Alert, Change, Pattern, alerts, changes, patterns
from bot.model.rehearsal.transcript import Ending, Made

SLOWER, LATER_S = 1.5, 0.05
MORE_ERRORS = 0.02
FAILING = 0.05


class Picture:
    """Reads the newest good result of every check. Nothing in here asks or guesses."""

    def __init__(self, made: Sequence[Made]) -> None:
        self._made = tuple(made)
        self._good = {each.check: each for each in made if each.ending is Ending.OK}

    def tries(self, key: str) -> Sequence[Made]:
        """Every call of a check, the oldest first."""
        return [each for each in self._made if each.check == key]

    def answered(self, key: str) -> bool:
        """Whether the check came back with anything, facts or none."""
        return key in self._good

    def keys(self, family: str) -> list[str]:
        """The answered checks of a family that has subjects."""
        return [key for key in self._good if key.partition("__")[0] == family]

    def text(self, key: str) -> str:
        """The words of a result."""
        return self._good[key].text if key in self._good else ""

    def cite(self, *keys: str) -> str:
        """The calls of these checks as an answer cites them, with a space in front; "" for none."""
        labels = dict.fromkeys(self._good[key].label for key in keys if key in self._good)
        known = sorted((label for label in labels if label), key=lambda label: int(label[1:]))
        return f" [{', '.join(known)}]" if known else ""

    def changes(self, key: str, **labels: str) -> list[Change]:
        """The series of a check that bear these labels."""
        found = self._changes.get(key)
        if found is None:
            found = self._changes[key] = changes(self.text(key))
        return [
            each for each in found if all(each.labels.get(name) == value for name, value in labels.items())
        ]

    def change(self, key: str, **labels: str) -> Change | None:
        """The first of them."""
        return next(iter(self.changes(key, **labels)), None)

    def has_facts(self, key: str) -> bool:
        """Whether the check found series."""
        return bool(self.changes(key))

    @cached_property
    def _changes(self) -> dict[str, list[Change]]:
        return {}

    @cached_property
    def alerts(self) -> list[Alert]:
        """What fires or is pending."""
        return alerts(self.text("alerts"))

    @cached_property
    def deploys(self) -> list[Deploy]:
        """The deploys that were listed, the newest first."""
        return deploys(self.text("deploys"))

    def patterns(self) -> list[tuple[str, Pattern]]:
        """Message patterns of all log results, each with its check."""
        keys = ["complaints", *self.keys("logs")]
        return [(key, each) for key in keys for each in patterns(self.text(key))]

    @cached_property
    def services(self) -> list[str]:
        """Everything that has a name in the facts: services, what they depend on, clients."""
        found = {
            change.labels[name]
            for key in ("latency", "errors", "mean", "spent", "pools", "pressure", "queries", "kinds")
            for change in self.changes(key)
            for name in ("service", "dependency")
            if change.labels.get(name)
        }
        return sorted(found | {deploy.service for deploy in self.deploys if deploy.service})

    @cached_property
    def slow(self) -> list[Change]:
        """Services whose slowest requests take much longer than before, the worst first."""
        found = [each for each in self.changes("latency") if each.grew(SLOWER, LATER_S)]
        return sorted(found, key=lambda each: -each.rise)

    @cached_property
    def failing(self) -> list[Change]:
        """Services of whose requests many more fail than before, the worst first."""
        found = [each for each in self.changes("errors") if each.grew(2, MORE_ERRORS) or each.now >= FAILING]
        return sorted(found, key=lambda each: -each.now)

    @property
    def fails_more_than_it_lags(self) -> bool:
        """Whether errors are the hotter lead."""
        worst = self.failing[0].now if self.failing else 0.0
        return worst >= 0.25 or (bool(self.failing) and not self.slow)
