"""What the sections of `watchkeeper.toml` are made of: their base, and the kinds of values in them."""

from __future__ import annotations

import re
from typing import Annotated, Any, TypeAlias, TypeVar
from urllib.parse import urlsplit

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, Strict

T = TypeVar("T")


def _one_or_many(value: Any) -> Any:
    return value if isinstance(value, list) else [value]


def _http_url(value: str) -> str:
    try:
        parts = urlsplit(value)
        usable = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable or re.search(r"\s", value):
        raise ValueError("should be a URL such as https://host:9090")
    return value


Seconds: TypeAlias = Annotated[float, Field(gt=0, allow_inf_nan=False)]
SecondsOrNone: TypeAlias = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Name: TypeAlias = Annotated[str, Field(min_length=1)]
Word: TypeAlias = Annotated[T, Strict(False)]  # one of an enum's words
OneOrMany: TypeAlias = Annotated[
    tuple[T, ...], BeforeValidator(_one_or_many), Field(strict=False, min_length=1)
]
HttpUrl: TypeAlias = Annotated[str, BeforeValidator(lambda v: _http_url(v) if isinstance(v, str) else v)]


class Section(BaseModel):
    """A table of the file: frozen, without unknown keys, without silent conversions."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, hide_input_in_errors=True)
