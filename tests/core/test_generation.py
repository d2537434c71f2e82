"""What comes back from the model is a complete message or a failure, told apart by type."""

from typing import get_args

from core.generation import Generated, GenerationFailed, GenerationOutcome, ModelRequest, StopReason
from core.history import Text, assistant
from core.usage import Usage


def test_an_outcome_is_a_message_or_a_failure() -> None:
    assert set(get_args(GenerationOutcome)) == {Generated, GenerationFailed}


def test_a_request_is_that_of_a_step_unless_it_says_otherwise() -> None:
    assert ModelRequest("Investigate.", (), ()).purpose == "step"


def test_a_message_has_no_invalid_calls_unless_they_are_named() -> None:
    assert Generated(assistant(Text("done")), StopReason.END, Usage(), "m").invalid_calls == ()


def test_a_failure_names_a_time_to_wait_only_where_the_provider_did() -> None:
    assert GenerationFailed("overloaded", temporary=True, usage=Usage()).retry_after_s is None


def test_a_stop_that_nobody_knows_is_told_apart_from_all_others() -> None:
    assert StopReason("unknown") is StopReason.UNKNOWN
