"""Reads `watchkeeper.toml`. What is wrong with it becomes one line: place, fault, what would be right."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from bot.errors import Unusable
from bot.settings.faults import describe
from bot.settings.sections import Configuration

FILE_NAME = "watchkeeper.toml"


def find(named: str | None, cwd: Path) -> Path | None:
    """The file that `WATCHKEEPER_CONFIG` names, else the one in the working directory if there is one."""
    if named is None:
        default = cwd / FILE_NAME
        return default if default.exists() else None
    path = cwd / named
    if not path.exists():
        raise Unusable(f"WATCHKEEPER_CONFIG: there is no file {named}; name an existing one or unset it")
    return path


def read(path: Path) -> Configuration:
    """The configuration in the file; raises Unusable."""
    place = path.name
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise Unusable(f"{place}, line {line}: not UTF-8; save the file as UTF-8") from None
    except OSError as error:
        raise Unusable(f"{path}: cannot be read ({(error.strerror or 'error').lower()})") from None
    try:
        return Configuration.model_validate(parse(text, place))
    except ValidationError as error:
        raise Unusable(describe(error, place)) from None


def parse(text: str, place: str) -> dict[str, Any]:
    """The tables of the file; a syntax fault names its line and column."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        found = re.fullmatch(
            r"(.*) \(at (?:line (\d+), column (\d+)|end of document)\)", str(error), re.DOTALL
        )
        what, line, column = found.groups() if found else (str(error), None, None)
        if line is None:
            line, column = str(text.count("\n") + 1), str(len(text) - (text.rfind("\n") + 1) + 1)
        fault = what.replace("\n", " ")[:1].lower() + what.replace("\n", " ")[1:]
        raise Unusable(f"{place}, line {line}, column {column}: not valid TOML: {fault}") from None
    except RecursionError:
        raise Unusable(f"{place}: nested too deeply to be read; write plain tables") from None
