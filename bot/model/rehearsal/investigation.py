"""Everything that the next message is decided from, put together from one request."""

from __future__ import annotations

from dataclasses import dataclass

from bot.model.rehearsal import transcript as transcripts
from bot.model.rehearsal.hypotheses import Hypothesis, Judged, decided, judged
from bot.model.rehearsal.judges import suspect
from bot.model.rehearsal.origin import Origin, Where, origin
from bot.model.rehearsal.picture import Picture
from bot.model.rehearsal.steering import Course, course
from bot.model.rehearsal.transcript import Transcript
from core.generation import ModelRequest
from core.tools import ToolSpec


@dataclass(frozen=True, slots=True)
class Investigation:
    """The state of an investigation: nothing of it is kept between two requests."""

    transcript: Transcript
    picture: Picture
    course: Course
    ranked: tuple[Judged, ...]
    source: Origin | None
    specs: tuple[ToolSpec, ...]

    @property
    def verdict(self) -> Judged | None:
        """The hypothesis for which the evidence decides."""
        return decided(self.ranked)

    def of(self, hypothesis: Hypothesis) -> Judged:
        """One hypothesis with its signs."""
        return next(each for each in self.ranked if each.hypothesis is hypothesis)

    def place_of(self, hypothesis: Hypothesis) -> str:
        """The service or dependency that a hypothesis is about, as far as the facts name one; else ""."""
        picture, key = (
            self.picture,
            {Hypothesis.POOL: "pools", Hypothesis.NEIGHBOUR: "pressure"}.get(hypothesis),
        )
        if key is not None:
            most = max(picture.changes(key), key=lambda each: each.now, default=None)
            return most.labels.get("service", "") if most else ""
        if hypothesis is Hypothesis.CERTIFICATE:
            first = min(picture.changes("certificates"), key=lambda each: each.now, default=None)
            return first.labels.get("service", "") if first else ""
        if self.source is None:
            return ""
        return self.source.service

    @property
    def witness(self) -> str:
        """The service whose logs tell most: where it comes from, or who asks for what it cannot see into."""
        if self.source is None:
            return ""
        outside = self.source.where in (Where.DEPENDENCY, Where.CALL)
        return self.source.caller if outside else self.source.service

    @property
    def suspected_commit(self) -> str:
        """The deploy to look into: of the right service at the right time; else, if asked for, the newest."""
        near = suspect(self.picture, self.source)
        if near is None and Hypothesis.DEPLOY in self.course.wanted:
            near = next(iter(self.picture.deploys), None)
        return near.commit if near else ""


def investigation(request: ModelRequest) -> Investigation:
    """Read the whole request."""
    transcript = transcripts.read(request.messages)
    picture = Picture(transcript.made)
    return Investigation(
        transcript,
        picture,
        course(transcript, picture),
        tuple(judged(picture)),
        origin(picture),
        request.tools,
    )
