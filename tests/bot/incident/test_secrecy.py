"""What is really wrong cannot be read anywhere that the agent reaches: it has to be found."""

import json
import re
from pathlib import Path
from urllib.parse import quote

import pytest

from bot.incident import RUNBOOKS
from bot.incident.answers import TRUTHS
from bot.incident.deploys import make_repository
from bot.incident.metrics import JOBS, SERVICES
from bot.incident.scenarios import SCENARIOS
from tests.architecture.sources import imported_modules, python_files, tree
from tests.bot.incident.conftest import Open, Shop
from tests.bot.incident.stories import EVENING, story
from tests.bot.incident.test_incident import git

FORBIDDEN = [
    re.compile("[-_ ]".join(re.escape(word) for word in name.split("_")), re.IGNORECASE)
    for name in SCENARIOS
    if name != "nothing_wrong"  # as words it stands in the runbook for false alarms
]
FORBIDDEN += [
    re.compile(words) for words in ("nothing_wrong", "(?i)root.cause", "(?i)culprit", "(?i)scenario")
]
FORBIDDEN += [re.compile(re.escape(text)) for each in TRUTHS.values() for text in (each.cause, each.mend)]


def leaks(text: str) -> list[str]:
    return [pattern.pattern for pattern in FORBIDDEN if pattern.search(text)]


async def crawl(shop: Shop) -> str:
    """Everything that any address gives."""
    paths = ["/", "/nowhere", "/traces/api/services", "/traces/api/traces?service=checkout&limit=200"]
    paths += [f"/shop/{job}/metrics" for job in JOBS]
    paths += [f"/shop/{name}/{page}" for name in SERVICES for page in ("healthz", "version")]
    paths += [f"/shop/{name}/moon" for name in SERVICES]
    base = "/prometheus/api/v1/"
    paths += [
        base + each for each in ("alerts", "rules", "targets", "labels", "metadata", "status/buildinfo")
    ]
    all_series = quote('{job!=""}')
    paths += [base + f"series?match[]={all_series}", base + f"query?query={all_series}"]
    _, labels = await shop.get(base + "labels")
    paths += [base + f"label/{name}/values" for name in labels["data"]]
    start = EVENING - 4 * 3_600
    every = quote('{service=~".+"}')
    paths += [f"/loki/api/v1/query_range?limit=5000&start={start}&query={every}&direction={way}"
              for way in ("forward", "backward")]  # fmt: skip
    paths += [f"/loki/api/v1/{each}" for each in ("labels", "series", "label/service/values")]
    texts = []
    for path in paths:
        _, body = await shop.get(path)
        texts.append(body if isinstance(body, str) else json.dumps(body))
    return "\n".join(texts)


@pytest.mark.parametrize("name", SCENARIOS)
async def test_no_address_tells_what_is_wrong(name: str, shop: Open) -> None:
    assert leaks(await crawl(await shop(name))) == []


@pytest.mark.parametrize("name", SCENARIOS)
def test_no_commit_or_file_of_the_deploy_history_tells_it(name: str, tmp_path: Path) -> None:
    make_repository(story(name), tmp_path)
    assert leaks(git(tmp_path, "log", "--all", "-p", "--decorate")) == []


def test_no_runbook_tells_it() -> None:
    for path in RUNBOOKS.glob("*.md"):
        assert leaks(path.read_text(encoding="utf-8")) == [], path.name


def test_nothing_of_the_program_imports_the_answers() -> None:
    found = [
        str(path)
        for path in python_files("bot", "core", "storage")
        if any("incident.answers" in name for name in imported_modules(tree(path)))
        or "incident import answers" in path.read_text(encoding="utf-8")
    ]
    assert found == []


def test_every_story_has_its_truth_and_recognises_it() -> None:
    assert set(TRUTHS) == set(SCENARIOS)
    for name, truth in TRUTHS.items():
        assert [other for other, each in TRUTHS.items() if each.found_in(truth.cause)] == [name]
