"""Names are legal, unique and the same every time; classes are no better than the annotations say."""

import re

import mcp_types as types
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.tools.mcp_specs import specs_by_name, tool_class
from core.tools import ToolClass


def tool(name: str, annotations: types.ToolAnnotations | None = None) -> types.Tool:
    return types.Tool(name=name, description="", input_schema={"type": "object"}, annotations=annotations)


@given(st.text(min_size=1, max_size=30), st.lists(st.text(min_size=1, max_size=90), unique=True, max_size=8))
def test_any_names_become_legal_and_unique_ones(entry: str, names: list[str]) -> None:
    found = specs_by_name(entry, [tool(name) for name in names], 30)
    assert [remote for remote, _ in found.values()] == names
    assert all(re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", name) for name in found)
    assert list(found) == list(specs_by_name(entry, [tool(name) for name in names], 30))


def test_a_plain_name_stays_as_it_is() -> None:
    assert list(specs_by_name("probe", [tool("list-pods"), tool("a.b"), tool("a b")], 30))[:2] == [
        "probe__list-pods",
        "probe__a_b",
    ]


@pytest.mark.parametrize(
    "annotations,expected",
    [
        (None, ToolClass.SIDE_EFFECT),
        (types.ToolAnnotations(), ToolClass.SIDE_EFFECT),
        (types.ToolAnnotations(read_only_hint=True), ToolClass.READ_ONLY),
        (types.ToolAnnotations(read_only_hint=False, idempotent_hint=True), ToolClass.IDEMPOTENT),
        (types.ToolAnnotations(read_only_hint=True, destructive_hint=True), ToolClass.READ_ONLY),
        (types.ToolAnnotations(destructive_hint=False), ToolClass.SIDE_EFFECT),
    ],
)
def test_the_class_comes_from_the_hints(
    annotations: types.ToolAnnotations | None, expected: ToolClass
) -> None:
    assert tool_class(annotations) is expected


def test_no_tool_is_interruptible_by_itself_and_the_entrys_limit_is_theirs() -> None:
    tools = [tool("a", types.ToolAnnotations(read_only_hint=True)), tool("b")]
    specs = [spec for _, spec in specs_by_name("p", tools, 7).values()]
    assert [(spec.interruptible, spec.timeout_s) for spec in specs] == [(False, 7), (False, 7)]
