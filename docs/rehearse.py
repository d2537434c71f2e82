"""Draws docs/rehearsal.md: what the rehearsal model concludes for every fault, with and without hints.

`python -m docs.rehearse` runs it against the bundled incident over HTTP, with the tools that `serve` has. It
takes minutes, so that the page is drawn by hand; a slow test tells when a conclusion is wrong.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from aiohttp import web

from bot.incident import RUNBOOKS
from bot.incident.answers import TRUTHS
from bot.incident.app import incident_app
from bot.incident.deploys import make_repository
from bot.incident.incident import Incident
from bot.model.rehearsal.model import RehearsalModel
from bot.ports import ToolCall
from bot.tools.deploys import DeploysProvider
from bot.tools.logs import LogsProvider
from bot.tools.prometheus import PrometheusProvider
from bot.tools.registry import ToolBox
from bot.tools.runbooks import RunbooksProvider
from core import prompt
from core.generation import Generated, ModelRequest
from core.history import Block, Message, Result, Text, user
from core.redaction import Redactor
from core.tools import CallResult
from docs.draw import table

PAGE = Path(__file__).parent / "rehearsal.md"
SEED = 7
AFTER_S = 90.0  # people ask a moment after the alert came
MOST_STEPS = 12
HINTS = ("no steer", "a right hint", "a wrong hint")


@dataclass(frozen=True, slots=True)
class Told:
    """One investigation: the answer, and what it took."""

    fault: str
    hint: str
    words: str
    answer: str
    transcript: tuple[Message, ...]

    @property
    def verdict(self) -> str:
        """The answer's first part."""
        return self.answer.partition("\n\n")[0].removeprefix("**Verdict**: ")

    @property
    def is_right(self) -> bool:
        """Whether the verdict, with its evidence, names the cause."""
        shown = self.answer.partition("**Ruled out**")[0]
        return TRUTHS[self.fault].found_in(shown) and self.verdict.lower().startswith(KINDS[self.fault])

    @property
    def steps(self) -> int:
        """Requests to the model."""
        return sum(message.role == "assistant" for message in self.transcript) + 1

    @property
    def calls(self) -> int:
        """Calls of tools."""
        return sum(len(message.calls) for message in self.transcript)


HEAD = """# The rehearsal model

Without `ANTHROPIC_API_KEY`, `watchkeeper local` investigates with a *rehearsal* model: rules behind the same
port as Claude. It is scripted, and says so at the end of each answer. It issues real calls of the tools that
are declared, reads their real results, follows the hottest lead, and changes course when people steer. It
knows six kinds of causes and nothing of the story that is told: swap the fault, and the answer changes.

| in `bot/model/rehearsal` | what |
| --- | --- |
| `transcript`, `findings`, `deploys` | what was said and done; result texts as facts |
| `catalogue`, `checks` | what can be asked, in which ways; which declared tool takes it |
| `picture`, `origin` | the facts together; the way down from what people feel to where it comes from |
| `hypotheses`, `judges` | the causes it knows; what speaks for and against each |
| `steering`, `planning` | what people's words change; the next batch |
| `answer`, `advice`, `model` | the answer; the port |

A hint moves a cause or a service to the front of the checks. It is no proof: the evidence decides, and the
answer says under *Steers* what each message changed. “Ignore the deploy” spends no further call on it. Faults
that began more than eight hours ago show no beginning, and without one the answer says that it cannot decide.

## What it concludes

Each fault of the bundled incident, asked a minute and a half after its alert; the hint comes while the first
batch of calls runs. Drawn by `python -m docs.rehearse`; a slow test tells when a conclusion is wrong.
"""
FOOT = """## An answer

To `{fault}`, with the wrong hint “{words}”:"""
KINDS = {
    "bad_deploy": "a bad deploy",
    "exhausted_pool": "an exhausted connection pool",
    "slow_dependency": "a slow dependency",
    "expired_certificate": "an expired certificate",
    "noisy_neighbour": "a noisy neighbour",
    "nothing_wrong": "nothing wrong",
}


@asynccontextmanager
async def tools(fault: str, seed: int = SEED, speed: float = 1.0) -> AsyncIterator[tuple[Incident, ToolBox]]:
    """The incident over HTTP, and the tools that are pointed at it."""
    incident = Incident(fault, seed, time.time() - AFTER_S, speed)
    runner = web.AppRunner(incident_app(incident))
    await runner.setup()
    with tempfile.TemporaryDirectory() as folder:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        base = f"http://127.0.0.1:{runner.addresses[0][1]}"
        await asyncio.to_thread(make_repository, incident.story, Path(folder))
        box = ToolBox(
            [
                PrometheusProvider(f"{base}/prometheus"),
                LogsProvider(base),
                DeploysProvider(Path(folder)),
                RunbooksProvider(RUNBOOKS),
            ],
            Redactor(()),
        )
        await box.start()
        try:
            yield incident, box
        finally:
            await box.close()
            await runner.cleanup()


async def investigate(box: ToolBox, alert: str, hint: str = "") -> tuple[str, tuple[Message, ...]]:
    """One investigation to its answer; the hint comes while the first batch runs."""
    model, hurry = RehearsalModel(pause_s=0), asyncio.Event()
    words = f"{alert}: what is wrong?"
    messages = [user(Text(prompt.person_message("Ana", "initiator", "14:05:00Z", words)))]
    number = 0
    for _ in range(MOST_STEPS):
        outcome = await model.open(ModelRequest("", box.specs(), tuple(messages))).run()
        if not isinstance(outcome, Generated):
            raise RuntimeError(outcome.cause)
        if not outcome.message.calls:
            return outcome.message.text, tuple(messages)
        calls = outcome.message.calls
        results = await asyncio.gather(
            *(box.run(ToolCall(each.id, each.name, dict(each.input)), hurry) for each in calls)
        )
        blocks: list[Block] = [
            _result(call.id, call.name, f"c{number + place}", result)
            for place, (call, result) in enumerate(zip(calls, results, strict=True), 1)
        ]
        if hint and not number:
            blocks.append(Text(prompt.person_message("Ben", "responder", "14:06:00Z", hint)))
        number += len(calls)
        messages += [outcome.message, user(*blocks)]
    raise RuntimeError(f"no answer after {MOST_STEPS} steps")


def _result(call_id: str, tool: str, label: str, result: CallResult) -> Result:
    return Result(call_id, prompt.tool_output(label, tool, result.text), is_error=result.is_error)


async def told(fault: str, hint: str, seed: int = SEED) -> Told:
    """One row of the table."""
    truth = TRUTHS[fault]
    words = {"a right hint": truth.right_hint, "a wrong hint": truth.wrong_hint}.get(hint, "")
    async with tools(fault, seed) as (incident, box):
        answer, messages = await investigate(box, incident.alert, words)
    return Told(fault, hint, words, answer, messages)


async def main() -> None:
    """Write the page; with names of faults, print their whole investigations instead."""
    if chosen := sys.argv[1:]:
        for fault in chosen:
            for hint in HINTS:
                row = await told(fault, hint)
                words = [each.text for each in row.transcript if each.role == "assistant"]
                sys.stdout.write(
                    f"\n=== {fault}, {hint}: {row.words}\n"
                    f"right: {row.is_right}, steps {row.steps}, calls {row.calls}\n"
                    + "\n".join(words)
                    + f"\n{row.answer}\n"
                )
        return
    rows = [await told(fault, hint) for fault in TRUTHS for hint in HINTS]
    PAGE.write_text(page(rows), encoding="utf-8")


def page(rows: list[Told]) -> str:
    """The whole page."""
    drawn = table(
        ("fault", "people said", "what the rehearsal concluded", "right", "requests", "calls"),
        (
            (
                f"`{row.fault}`",
                f"{row.hint}{f': “{row.words}”' if row.words else ''}",
                row.verdict.partition(" Confidence:")[0],
                "yes" if row.is_right else "**no**",
                str(row.steps),
                str(row.calls),
            )
            for row in rows
        ),
    )
    example = next(row for row in rows if row.hint == "a wrong hint")
    quoted = "\n".join(f"> {line}".rstrip() for line in example.answer.splitlines())
    return f"{HEAD}\n{drawn}\n{FOOT.format(fault=example.fault, words=example.words)}\n\n{quoted}\n"


if __name__ == "__main__":
    asyncio.run(main())
