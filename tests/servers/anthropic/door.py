"""The door: size, credentials, version and JSON, before any rule is asked."""

import json
import re
from collections.abc import Mapping
from typing import Any

from aiohttp import web

from tests.servers.anthropic.fault import Fault
from tests.servers.anthropic.rules.version import VERSIONS

MAX_BODY = 32 * 1024 * 1024
SURROGATE = re.compile(rb"\\u[dD][89a-fA-F][0-9a-fA-F]{2}")


class Refused(Exception):
    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.message)
        self.fault = fault


async def read_body(request: web.Request) -> bytes:
    """Too large a body is read to its end and thrown away, so that the client hears why."""
    parts: list[bytes] = []
    size = 0
    async for part in request.content.iter_any():
        size += len(part)
        if size <= MAX_BODY:
            parts.append(part)
    if size > MAX_BODY:
        words = "Request exceeds the maximum size"
        raise Refused(Fault("too_large", words, status=413, error="request_too_large"))
    return b"".join(parts)


def check_headers(headers: Mapping[str, str], *, api_key: str | None) -> None:
    given = headers.get("x-api-key") or headers.get("authorization", "").removeprefix("Bearer ")
    if not given:
        raise Refused(unauthorised("x-api-key header is required"))
    if api_key is not None and given != api_key:
        raise Refused(unauthorised("invalid x-api-key"))
    if "anthropic-version" not in headers:
        raise Refused(Fault("version", "anthropic-version: header is required"))
    if headers["anthropic-version"] not in VERSIONS:
        words = f'anthropic-version: "{headers["anthropic-version"]}" is not a valid version'
        raise Refused(Fault("version", words))


def unauthorised(words: str) -> Fault:
    return Fault("api_key", words, status=401, error="authentication_error")


def parse(raw: bytes) -> Mapping[str, Any]:
    try:
        body = json.loads(raw.decode(), parse_constant=not_json)
    except (ValueError, RecursionError) as problem:
        raise Refused(Fault("bad_json", f"The request body is not valid JSON: {problem}")) from None
    if not isinstance(body, dict):
        raise Refused(Fault("bad_json", "Input should be an object"))
    refuse_lone_surrogates(body, raw)
    return body


def not_json(word: str) -> None:
    raise ValueError(f"unexpected {word}")


def refuse_lone_surrogates(body: Mapping[str, Any], raw: bytes) -> None:
    """Python reads half a pair without complaint; writing it as UTF-8 finds it."""
    try:
        json.dumps(body, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        escape = SURROGATE.search(raw)
        column = escape.start() + 1 if escape else 1
        words = f"no low surrogate in string: line 1 column {column} (char {column - 1})"
        raise Refused(Fault("lone_surrogate", f"The request body is not valid JSON: {words}")) from None
