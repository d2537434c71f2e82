"""A rough count of tokens: four characters each."""

import json
from typing import Any


def tokens_in(value: Any) -> int:
    """Of a text, or of anything else as JSON. Nothing costs nothing."""
    if value in (None, "", [], {}):
        return 0
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return -(-len(text) // 4)
