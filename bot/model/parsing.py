"""The input of a call, read once and strictly: what does not parse was not said.

Salvaging a cut input runs something that the model did not ask for (earendil-works/pi#6284,
can1357/oh-my-pi#11104).
"""

from __future__ import annotations

import json
import math

from core.history import Json


def parsed_input(text: str) -> tuple[dict[str, Json], str]:
    """The input and "", or an empty one and why it cannot be used."""
    try:
        value = json.loads(text, parse_constant=_no_constant, parse_float=_finite)
    except (ValueError, RecursionError) as error:
        return {}, f"its input is not valid JSON ({str(error)[:120] or 'nested too deep'})"
    if not isinstance(value, dict):
        return {}, f"its input is not a JSON object but {_KINDS.get(type(value), 'something else')}"
    return value, ""


_KINDS: dict[type, str] = {
    list: "an array",
    str: "a string",
    int: "a number",
    float: "a number",
    bool: "true or false",
    type(None): "null",
}


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is not JSON")


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text[:40]} is out of range")
    return value
