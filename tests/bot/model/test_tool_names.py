"""Tool names are legal on the wire, and two tools never share one."""

import re

from hypothesis import given
from hypothesis import strategies as st

from bot.model.tool_names import LONGEST, wire_name, with_own_names
from core.history import Call, Text, assistant

NAMES = st.sampled_from(["logs", "k8s.pods", "k8s_pods", "", "a" * 64, "a" * 65, "a" * 66]) | st.text()


@given(first=NAMES, second=NAMES)
def test_names_are_legal_and_differ_where_the_tools_do(first: str, second: str) -> None:
    assert re.fullmatch(rf"[a-zA-Z0-9_-]{{1,{LONGEST}}}", wire_name(first))
    assert (wire_name(first) == wire_name(second)) is (first == second)


def test_a_legal_name_stays() -> None:
    assert wire_name("probe__slow") == "probe__slow"


def test_our_names_come_back() -> None:
    message = assistant(Text("x"), Call("a", wire_name("k8s.pods"), {}), Call("b", "logs", {}))
    assert [c.name for c in with_own_names(message, ["k8s.pods", "logs"]).calls] == ["k8s.pods", "logs"]


def test_a_message_without_such_names_is_the_same_object() -> None:
    message = assistant(Call("b", "logs", {}))
    assert with_own_names(message, ["k8s.pods", "logs"]) is message
