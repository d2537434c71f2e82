"""The story that is being told: chosen, changed in place, kept in a small file."""

from __future__ import annotations

import json
import os
import random
import time
from collections.abc import Callable
from pathlib import Path

from bot.incident.samples import Samples
from bot.incident.scenarios import SCENARIOS
from bot.incident.story import Story

OLDEST_S = 14 * 86_400.0  # a story is computed from its beginning, which takes longer with each day


class Incident:
    """One story at a time. Everything that serves it asks here at every request."""

    def __init__(
        self,
        scenario: str,
        seed: int,
        began_at: float,
        speed: float = 1.0,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """`began_at` is when the alert comes, in epoch seconds; what led to it lies before."""
        if scenario not in SCENARIOS:
            raise ValueError(f"there is no scenario {scenario!r}; there are {', '.join(SCENARIOS)}")
        if not 0.1 <= speed <= 60:
            raise ValueError(f"speed {speed:g} is not between 0.1 and 60")
        self.now = clock
        self._tell(Story(SCENARIOS[scenario], seed, float(began_at), float(speed)))

    def _tell(self, story: Story) -> None:
        self.story = story
        self.samples = Samples(story)

    @property
    def scenario(self) -> str:
        """Its name: for the person who chose it, never for the agent."""
        return self.story.scenario.name

    @property
    def alert(self) -> str:
        """The text that starts the story."""
        return self.story.scenario.alert

    def choose(self, name: str | None = None, *, began_at: float | None = None) -> str:
        """Tell another story from now on, drawn when no name is given; returns its name."""
        chosen = name if name is not None else random.SystemRandom().choice(sorted(SCENARIOS))
        if chosen not in SCENARIOS:
            raise ValueError(f"there is no scenario {chosen!r}; there are {', '.join(SCENARIOS)}")
        seed = random.SystemRandom().randrange(1, 2**31)
        began = self.now() if began_at is None else began_at
        self._tell(Story(SCENARIOS[chosen], seed, began, self.story.speed))
        return chosen

    def save(self, path: Path) -> None:
        """Keep the story; a reader sees the old file or the new one, never half of one."""
        story = self.story
        kept = {
            "scenario": story.scenario.name,
            "seed": story.seed,
            "began_at": story.began_at,
            "speed": story.speed,
        }
        path.parent.mkdir(parents=True, exist_ok=True)
        beside = path.with_name(f"{path.name}.{os.getpid()}")
        beside.write_text(json.dumps(kept) + "\n", encoding="utf-8")
        beside.replace(path)

    @classmethod
    def load(cls, path: Path, clock: Callable[[], float] = time.time) -> Incident | None:
        """The story that was kept; None when there is none that can be told, or it began weeks ago."""
        try:
            kept = json.loads(path.read_text(encoding="utf-8"))
            began_at = float(kept["began_at"])
            if not -OLDEST_S < began_at - clock() < OLDEST_S:
                return None
            return cls(str(kept["scenario"]), int(kept["seed"]), began_at, float(kept["speed"]), clock)
        except (OSError, ValueError, KeyError, TypeError):
            return None
