"""Schemas of other people may be wrong or hostile; an input is refused only for what it lacks itself."""

import pytest

from bot.tools.arguments import Schemas, describe
from core.history import Json


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "nonsense"},
        {"$ref": "https://example.invalid/schema.json"},
        {"$ref": "#/$defs/missing"},
        {"properties": {"a": {"$ref": "#"}}},
        {},
    ],
)
def test_a_schema_that_says_nothing_usable_refuses_nothing(schema: dict[str, Json]) -> None:
    assert Schemas().fault("tool", schema, {"a": {"a": {}}}) is None


def test_only_an_object_is_an_input() -> None:
    assert (Schemas().fault("tool", {"type": "object"}, ["a"]) or "").startswith(
        "the input must be an object"
    )


def test_a_schema_that_changes_is_read_again() -> None:
    schemas = Schemas()
    assert schemas.fault("tool", {"required": ["a"]}, {"a": 1}) is None
    assert schemas.fault("tool", {"required": ["b"]}, {"a": 1}) is not None


def test_another_dialect_is_understood() -> None:
    draft4: dict[str, Json] = {
        "$schema": "http://json-schema.org/draft-04/schema#",
        "properties": {"a": {"maximum": 3, "exclusiveMaximum": True}},
    }
    assert Schemas().fault("tool", draft4, {"a": 3}) is not None


def test_what_a_tool_takes_is_said_in_one_sentence() -> None:
    assert describe({"properties": {"a": {"type": ["string", "null"]}, "b": {}}, "required": ["b"]}) == (
        "It takes: a (string or null), b (any, required)."
    )
    assert describe({"properties": {}, "additionalProperties": False}) == "It takes no arguments."
