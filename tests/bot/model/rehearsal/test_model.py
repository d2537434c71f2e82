"""The rehearsal is a model like any other to those who ask it: timed, cancellable, counted, and free."""

import asyncio
import time

import pytest

from bot.model.rehearsal.model import NAME, RehearsalModel
from bot.ports import Model
from core.generation import Generated, GenerationFailed, ModelRequest, StopReason
from core.history import Text, user
from core.prompt import person_message
from core.usage import Usage
from tests.bot.model.rehearsal.room import TOOLS


def request(words: str = "checkout is slow, why?", purpose: str = "step") -> ModelRequest:
    message = user(Text(person_message("Ana", "initiator", "14:05:00Z", words)))
    return ModelRequest("Be brief.", TOOLS, (message,), purpose)


def test_its_name_says_that_it_is_scripted() -> None:
    model: Model = RehearsalModel()
    assert model.name == NAME == "rehearsal (scripted)"


async def test_it_makes_calls_at_no_cost() -> None:
    generation = RehearsalModel(pause_s=0).open(request())
    assert generation.usage == Usage()
    outcome = await generation.run()
    assert isinstance(outcome, Generated)
    assert outcome.stop is StopReason.CALLS
    assert outcome.message.calls
    assert outcome.usage == generation.usage
    assert outcome.usage.cost_usd == 0
    assert outcome.usage.exact
    assert outcome.usage.input_tokens > 20
    assert outcome.usage.output_tokens > 50


async def test_it_says_what_it_is_doing() -> None:
    generation = RehearsalModel(pause_s=0.4).open(request())
    assert generation.doing == "thinking"
    work = asyncio.create_task(generation.run())
    await asyncio.sleep(0.05)
    assert generation.doing == "thinking"
    await asyncio.sleep(0.25)
    assert generation.doing == "preparing calls"
    await work


async def test_it_takes_its_time_and_stops_at_once_when_it_is_cancelled() -> None:
    generation = RehearsalModel(pause_s=30).open(request())
    work = asyncio.create_task(generation.run())
    await asyncio.sleep(0.05)
    began = time.monotonic()
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
    assert time.monotonic() - began < 1
    assert generation.usage.input_tokens > 0
    assert generation.usage.output_tokens == 0


async def test_a_side_request_gets_a_word_and_no_calls() -> None:
    outcome = await RehearsalModel(pause_s=0).open(request(purpose="title")).run()
    assert isinstance(outcome, Generated)
    assert not outcome.message.calls


async def test_a_fault_of_its_rules_is_a_failure_and_no_exception() -> None:
    broken = ModelRequest("", TOOLS, (None,))  # type: ignore[arg-type]
    outcome = await RehearsalModel(pause_s=0).open(broken).run()
    assert isinstance(outcome, GenerationFailed)
    assert not outcome.temporary
