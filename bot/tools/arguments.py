"""Whether a call's arguments fit its tool's schema, and, if not, what would be right.

The schema is JSON Schema 2020-12 unless it names another dialect
(https://modelcontextprotocol.io/specification/2025-11-25/basic#json-schema-usage). References outside the
document are not fetched.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from jsonschema import Draft202012Validator  # type: ignore[import-untyped]
from jsonschema.exceptions import SchemaError, ValidationError  # type: ignore[import-untyped]
from jsonschema.validators import validator_for  # type: ignore[import-untyped]
from referencing import Registry
from referencing.exceptions import Unresolvable

from core.history import Json

MOST_FAULTS = 5


class Schemas:
    """Compiled schemas by tool; one is compiled again only when it changes."""

    def __init__(self) -> None:
        self._compiled: dict[str, tuple[Mapping[str, Json], Any]] = {}

    def fault(self, tool: str, schema: Mapping[str, Json], arguments: object) -> str | None:
        """What is wrong with the arguments and what would be right; None when they fit."""
        if not isinstance(arguments, dict):
            return f"the input must be an object. {describe(schema)}"
        try:
            json.dumps(arguments, ensure_ascii=False, allow_nan=False).encode()
        except (ValueError, TypeError) as error:
            return f"the input cannot be sent as JSON ({_reason(error)}). {describe(schema)}"
        validator = self._validator(tool, schema)
        if validator is None:
            return None  # a schema that is itself broken says nothing about the input; the tool will
        try:
            faults = [_words(error) for error, _ in zip(validator.iter_errors(arguments), range(MOST_FAULTS))]  # noqa: B905 — the shorter decides
        except (Unresolvable, RecursionError):
            return None
        return f"{'; '.join(faults)}. {describe(schema)}" if faults else None

    def _validator(self, tool: str, schema: Mapping[str, Json]) -> Any:
        known = self._compiled.get(tool)
        if known is not None and known[0] == schema:
            return known[1]
        kind = validator_for(schema, default=Draft202012Validator)
        try:
            kind.check_schema(schema)
            compiled = kind(schema, registry=Registry())
        except (SchemaError, Unresolvable, RecursionError):
            compiled = None
        self._compiled[tool] = (schema, compiled)
        return compiled


def describe(schema: Mapping[str, Json]) -> str:
    """The arguments a schema asks for, in one sentence."""
    properties = schema.get("properties")
    if not isinstance(properties, Mapping) or not properties:
        return (
            "It takes no arguments." if schema.get("additionalProperties") is False else "It takes an object."
        )
    required = schema.get("required")
    needed = set(required) if isinstance(required, list) else set()
    parts = [
        f"{name} ({_type(rule)}{', required' if name in needed else ''})" for name, rule in properties.items()
    ]
    return f"It takes: {', '.join(parts)}."


def _type(rule: object) -> str:
    if not isinstance(rule, Mapping):
        return "any"
    if isinstance(values := rule.get("enum"), list):
        return "one of " + ", ".join(json.dumps(value, ensure_ascii=False) for value in values[:12])
    match rule.get("type"):
        case str() as name:
            return name
        case list() as names:
            return " or ".join(str(name) for name in names)
        case _:
            return "any"


def _words(error: ValidationError) -> str:
    place = ".".join(str(step) for step in error.absolute_path)
    message = error.message if len(error.message) <= 200 else error.message[:199] + "…"
    return f"{place}: {message}" if place else message


def _reason(error: Exception) -> str:
    return "a lone surrogate in a text" if isinstance(error, UnicodeEncodeError) else str(error)
