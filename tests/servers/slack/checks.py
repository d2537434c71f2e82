"""Small checkers that Block Kit's rules are composed of.

A checker looks at one value at one place and reports every fault in Slack's words, with the place
as a JSON pointer. A shape is a table: field → (checker, required).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

Report = Callable[[str, str], None]
Checker = Callable[[Any, str, Report], None]
Shape = Mapping[str, tuple[Checker, bool]]


def need(checker: Checker) -> tuple[Checker, bool]:
    return checker, True


def may(checker: Checker) -> tuple[Checker, bool]:
    return checker, False


def string(most: int, least: int = 1) -> Checker:
    def check(value: Any, place: str, report: Report) -> None:
        if not isinstance(value, str):
            report("must be a string", place)
        elif len(value) < least:
            report(f"must be more than {least - 1} characters", place)
        elif len(value) > most:
            report(f"must be less than {most + 1} characters", place)

    return check


def boolean(value: Any, place: str, report: Report) -> None:
    if not isinstance(value, bool):
        report("must be a boolean", place)


def whole(value: Any, place: str, report: Report) -> None:
    if not isinstance(value, int) or isinstance(value, bool):
        report("must be an integer", place)


def one_of(*allowed: str) -> Checker:
    def check(value: Any, place: str, report: Report) -> None:
        if value not in allowed:
            report(f"must be a valid enum value: {', '.join(allowed)}", place)

    return check


def listed(checker: Checker, most: int, least: int = 1) -> Checker:
    def check(value: Any, place: str, report: Report) -> None:
        if not isinstance(value, list):
            report("must be an array", place)
            return
        if len(value) < least:
            report(f"no fewer than {least} items required", place)
        if len(value) > most:
            report(f"no more than {most} items allowed", place)
        for at, inner in enumerate(value):
            checker(inner, f"{place}/{at}", report)

    return check


def shaped(shape: Shape) -> Checker:
    def check(value: Any, place: str, report: Report) -> None:
        if not isinstance(value, dict):
            report("must be an object", place)
            return
        for name in value.keys() - shape.keys():
            report(f"invalid additional property: {name}", place)
        for name, (checker, required) in shape.items():
            if name in value:
                checker(value[name], f"{place}/{name}", report)
            elif required:
                report(f"missing required field: {name}", place)

    return check


def typed(kinds: Mapping[str, Shape], allowed: Collection[str] | None = None) -> Checker:
    """An object whose `type` chooses its shape from a table."""

    def check(value: Any, place: str, report: Report) -> None:
        if not isinstance(value, dict):
            report("must be an object", place)
            return
        kind = value.get("type")
        if not isinstance(kind, str) or kind not in kinds or (allowed is not None and kind not in allowed):
            report(f"unsupported type: {kind}", f"{place}/type")
            return
        shaped({"type": need(one_of(kind)), **kinds[kind]})(value, place, report)

    return check


def either(first: str, second: str, checker: Checker, *, both: bool = False) -> Checker:
    """`checker`, and at least one of two fields; both only if `both`."""

    def check(value: Any, place: str, report: Report) -> None:
        checker(value, place, report)
        if not isinstance(value, dict):
            return
        present = (first in value) + (second in value)
        if present == 0:
            report(f"missing required field: {first} or {second}", place)
        if present == 2 and not both:
            report(f"only one of {first} and {second} allowed", place)

    return check
