"""Faults of the configuration file in words for people: where, what is wrong, what would be right."""

from __future__ import annotations

import json
import types
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Any, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError

from bot.settings.sections import Configuration
from bot.settings.tool_sections import ToolSection, ToolSections

WANTED: Mapping[str, str] = {
    "float_type": "a number",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "string_type": "a text in quotes",
    "bool_type": "true or false",
    "tuple_type": 'a list, such as ["one", "two"]',
    "list_type": 'a list, such as ["one", "two"]',
    "dict_type": 'a table, such as { KEY = "value" }',
    "greater_than": "greater than {gt:g}",
    "greater_than_equal": "at least {ge:g}",
    "finite_number": "a finite number",
    "string_too_short": "a text that is not empty",
    "too_short": "a list that is not empty; leave the key out instead",
    "enum": "one of {expected}",
    "literal_error": "one of {expected}",
}


def describe(error: ValidationError, file: str) -> str:
    """The first fault, unknown keys before all others: they are the likeliest cause of the rest."""
    faults = error.errors(include_url=False)
    worst = min(faults, key=lambda fault: fault["type"] != "extra_forbidden")
    location = [part for part in worst["loc"] if part not in {"[key]"}]
    if worst["type"] == "extra_forbidden":
        return _unknown_key(location, file)
    if worst["type"] == "missing":
        return f'{_place(location[:-1], file)}: the key "{location[-1]}" is missing'
    if worst["type"] == "model_type":
        return f"{_place(location[:-1], file)}: {location[-1]} should be a table: write {_header(location)}"
    if worst["type"] == "tuple_type" and len(location) == 1:
        return f"{file}: {location[0]} should be a list of tables: write [[{location[0]}]]"
    return _wrong_value(worst, location, file)


def _wrong_value(fault: Any, location: list[int | str], file: str) -> str:
    table, key = _split(location)
    given = f"{key} " if key else ""
    if fault["type"] == "value_error":
        return f"{_place(table, file)}: {given}{fault['ctx']['error']}"
    wanted = WANTED.get(fault["type"], fault["msg"].removeprefix("Input should be ")).format(
        **fault.get("ctx", {})
    )
    wanted = wanted.replace("'", '"').replace('one of "anthropic"', '"anthropic"')
    return f"{_place(table, file)}: {given}should be {wanted}, not {_shown(fault['input'], location)}"


def _shown(value: Any, location: list[int | str]) -> str:
    """What stands in the file, short and on one line; what may be a secret is not shown."""
    if "env" in location:
        return "this"
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _unknown_key(location: list[int | str], file: str) -> str:
    *table, key = location
    model = _model_at(table)
    known = sorted(_keys(model)) if model else []
    what = "unknown table" if not table else "unknown key"
    near = get_close_matches(str(key), known, n=1, cutoff=0.6)
    if near:
        mend = f'did you mean "{near[0]}"?'
    elif home := _home_of(str(key)):
        mend = f"it belongs in {home}"
    elif known:
        mend = f"known here: {', '.join(known)}"
    else:
        mend = "this table has no keys yet"
    return f'{_place(table, file)}: {what} "{key}"; {mend}'


def _home_of(key: str) -> str | None:
    """The one section that has this very key."""
    homes = [_header([name]) for name, model in _sections() if key in _keys(model)]
    return homes[0] if len(homes) == 1 else None


def _sections() -> Iterator[tuple[str, type[BaseModel]]]:
    for name, field in Configuration.model_fields.items():
        if model := _model_in(field.annotation):
            yield name, model


def _keys(model: type[BaseModel]) -> list[str]:
    return [field.alias or name for name, field in model.model_fields.items()]


def _model_at(location: list[int | str]) -> type[BaseModel] | None:
    """The model of the table at this place."""
    model: type[BaseModel] | None = Configuration
    for part in location:
        if isinstance(part, int) or model is None:
            continue
        field = model.model_fields.get(part)
        model = _model_in(field.annotation) if field else ToolSection if model is ToolSections else None
    return model


def _model_in(annotation: Any) -> type[BaseModel] | None:
    """The model in `Model`, `Model | None` or `tuple[Model, ...]`."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    if get_origin(annotation) in {tuple, Union, types.UnionType}:
        return next((model for part in get_args(annotation) if (model := _model_in(part))), None)
    return None


def _split(location: list[int | str]) -> tuple[list[int | str], str]:
    """The table of a place, and the key in it ("" when the table itself is meant)."""
    depth = 2 if len(location) > 1 and (location[0] == "tools" or isinstance(location[1], int)) else 1
    table, keys = location[:depth], location[depth:]
    names = [f"entry {key + 1}" if isinstance(key, int) else key for key in keys]
    return table, ", ".join(names)


def _place(table: list[int | str], file: str) -> str:
    return f"{file}, {_header(table)}" if table else file


def _header(table: list[int | str]) -> str:
    """How the table's head is written in the file; the second of several `[[mcp]]` is "[[mcp]] 2"."""
    if len(table) > 1 and isinstance(table[1], int):
        rest = "".join(f", {part}" for part in table[2:])
        return f"[[{table[0]}]] {table[1] + 1}{rest}"
    return f"[{'.'.join(str(part) for part in table)}]"
