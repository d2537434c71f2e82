"""The rehearsal model: a rule-based investigator behind the `Model` port. Scripted, and it says so.

It reads the transcript and the declared tools of each request and nothing else: no clock, no file, no memory.
"""

from __future__ import annotations

import asyncio
import re

from bot.model.rehearsal.answer import SCRIPTED, answer
from bot.model.rehearsal.investigation import Investigation, investigation
from bot.model.rehearsal.planning import Planned, planned
from bot.model.rehearsal.steering import Hint, told
from bot.model.rehearsal.transcript import Said
from bot.model.rehearsal.words import listed
from core.generation import Generated, GenerationFailed, GenerationOutcome, ModelRequest, StopReason
from core.history import Block, Call, Message, Opaque, Result, Text, assistant
from core.usage import Usage

NAME = "rehearsal (scripted)"
CHARACTERS_PER_TOKEN = 4
SLICES = 5  # of the time in which a message is written
THINKING, WRITING, PREPARING = "thinking", "writing", "preparing calls"
_GREETING = re.compile(
    r"\W*(?:<@[^>]+>\s*|@\w+\s*)?(?:hi|hello|hey|thanks|thank you|thx|ok|okay|great)\b[\s\w]{0,20}\W*",
    re.IGNORECASE,
)


class RehearsalModel:
    """Costs nothing, needs no key, and takes about `pause_s` for each message, so that people can steer."""

    def __init__(self, *, pause_s: float = 1.5) -> None:
        self._pause_s = pause_s

    @property
    def name(self) -> str:
        """The model's name, as booked and shown."""
        return NAME

    def open(self, request: ModelRequest) -> RehearsalGeneration:
        """Prepare a request; nothing is decided before `run`."""
        return RehearsalGeneration(request, self._pause_s)

    async def warm_up(self) -> None:
        """Nothing to load."""

    async def close(self) -> None:
        """Nothing to give back."""


class RehearsalGeneration:
    """One message in the making."""

    def __init__(self, request: ModelRequest, pause_s: float) -> None:
        self._request = request
        self._pause_s = pause_s
        self._read = 0
        self._written = 0
        self._doing = THINKING

    @property
    def doing(self) -> str:
        """What it is doing, in the words of the card."""
        return self._doing

    @property
    def usage(self) -> Usage:
        """Counted by characters; it costs nothing, and that is exact."""
        return Usage(self._read // CHARACTERS_PER_TOKEN, -(-self._written // CHARACTERS_PER_TOKEN))

    async def run(self) -> GenerationOutcome:
        """Decide, then take the time that writing takes. Raises nothing but CancelledError."""
        try:
            return await self._generate()
        # A failure is a value for the caller, whatever it is; only being cancelled is none.
        except Exception as error:  # noqa: BLE001
            cause = f"the rehearsal's rules failed: {type(error).__name__}"
            return GenerationFailed(cause, temporary=False, usage=self.usage)

    async def _generate(self) -> Generated:
        request = self._request
        self._read = len(request.instructions) + sum(
            _characters(block) for message in request.messages for block in message.blocks
        )
        await asyncio.sleep(self._pause_s / 2)
        # Up to a hundred results are read: some milliseconds for which the loop need not wait.
        message = await asyncio.to_thread(decide, request)
        self._doing = PREPARING if message.calls else WRITING
        size = sum(_characters(block) for block in message.blocks)
        for part in range(1, SLICES + 1):
            await asyncio.sleep(self._pause_s / 2 / SLICES)
            self._written = size * part // SLICES
        stop = StopReason.CALLS if message.calls else StopReason.END
        return Generated(message, stop, self.usage, NAME)


def decide(request: ModelRequest) -> Message:
    """The next message: calls with a sentence, or the answer. Pure."""
    if request.purpose != "step":
        return assistant(Text(f"Nothing to add.\n\n{SCRIPTED}"))
    state = investigation(request)
    if (words := _small_talk(state)) is not None:
        return assistant(Text(f"{words}\n\n{SCRIPTED}"))
    batch = planned(state)
    if not batch:
        return assistant(Text(answer(state)))
    calls = (
        Call(f"{each.check.key}_{each.way}-{state.transcript.calls + number}", each.tool, each.input)
        for number, each in enumerate(batch, 1)
    )
    return assistant(Text(_sentence(state, batch)), *calls)


def _small_talk(state: Investigation) -> str | None:
    """A word without a question in it needs no investigation."""
    last = (state.transcript.news or (state.transcript.question,))[-1]
    if last is None or not _GREETING.fullmatch(last.words):
        return None
    if state.transcript.made:
        return (
            "The verdict above stands. Name a service or a cause, or write “check again”, and I look again."
        )
    return "Tell me what is wrong, such as “why is checkout slow?”, and I look into it."


def _sentence(state: Investigation, batch: list[Planned]) -> str:
    """What is checked and why; first what the newest messages change."""
    said = [_changed(state, each) for each in state.transcript.news]
    topics = listed(list(dict.fromkeys(each.check.topic for each in batch)))
    said.append(f"{_why(state)} {topics}.")
    return " ".join(said)


def _changed(state: Investigation, said: Said) -> str:
    mine = [hint for hint in state.course.hints if hint.said is said]
    wanted, dropped = [h for h in mine if not h.dropped], [h for h in mine if h.dropped]
    if not mine:
        return f"{said.name}'s message names nothing that these rules know so far; it is read again later."
    parts = [f"checks first: {_names(wanted)}"] if wanted else []
    parts += [f"leaves out: {_names(dropped)}"] if dropped else []
    return f"{said.name}'s message {' and '.join(parts)}."


def _names(hints: list[Hint]) -> str:
    return listed([told(hint) for hint in hints])


def _why(state: Investigation) -> str:
    transcript, picture = state.transcript, state.picture
    if not transcript.made:
        return "First what is wrong and what changed:"
    best = state.ranked[0]
    if best.points >= 3:
        return f"The hottest lead is {best.hypothesis.value}; now"
    if picture.fails_more_than_it_lags and picture.failing:
        return f"Requests of {picture.failing[0].labels.get('service', 'a service')} fail; now"
    if picture.slow:
        return f"Requests of {picture.slow[0].labels.get('service', 'a service')} are slow; now"
    return "Nothing stands out yet; now"


def _characters(block: Block) -> int:
    match block:
        case Text() | Result():
            return len(block.text)
        case Call():
            return len(block.name) + len(str(dict(block.input)))
        case Opaque():
            return 0
