"""The dashboard for Grafana: importable anywhere, each panel says what it shows and in which unit."""

from __future__ import annotations

import itertools
import json
import re
from pathlib import Path

import pytest

from bot.measures import Fleet, Measures
from core.history import Json

FILE = Path(__file__).parents[2] / "deploy" / "grafana" / "watchkeeper.json"
DASHBOARD: dict[str, Json] = json.loads(FILE.read_text())
PANELS: list[dict[str, Json]] = [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]
SOURCE = {"type": "prometheus", "uid": "${datasource}"}
UNITS = {"s", "short", "cpm", "bytes", "bool_on_off"}


def names() -> set[str]:
    """Every name under which a number of ours can be asked for."""
    measures = Measures()
    measures.expect_slack_calls(["chat.update"])
    measures.fleet_is(Fleet(0.0, 0.0, 0))
    return {sample.name for family in measures.registry.collect() for sample in family.samples}


def asked() -> set[str]:
    """Every name that a panel asks for."""
    queries = [target["expr"] for panel in PANELS for target in panel["targets"]]
    return set(re.findall(r"(?:watchkeeper|process)_\w+", " ".join(queries)))


def title(panel: dict[str, Json]) -> str:
    return str(panel["title"])


@pytest.mark.parametrize("panel", PANELS, ids=title)
def test_a_panel_says_what_it_shows_and_in_which_unit(panel: dict[str, Json]) -> None:
    assert re.match(r"[A-Z].+\.$", panel["description"])
    assert panel["fieldConfig"]["defaults"]["unit"] in UNITS


@pytest.mark.parametrize("panel", PANELS, ids=title)
def test_a_panel_asks_whichever_prometheus_was_chosen_for_the_jobs_that_were(panel: dict[str, Json]) -> None:
    assert panel["datasource"] == SOURCE
    for target in panel["targets"]:
        assert target["datasource"] == SOURCE
        assert target["legendFormat"]
        selectors = re.findall(r"(?:watchkeeper|process)_\w+(\{[^}]*\})?", target["expr"])
        assert selectors
        assert all('job=~"$job"' in selector for selector in selectors), target["expr"]


def test_every_variable_is_declared() -> None:
    declared = {variable["name"] for variable in DASHBOARD["templating"]["list"]}
    assert set(re.findall(r"\$\{?(\w+)", FILE.read_text())) - {"__all"} == declared


def test_only_numbers_that_exist_are_asked_for() -> None:
    assert asked() - names() == set()


def test_every_number_of_ours_is_shown() -> None:
    families = {
        re.sub(r"_(bucket|count|sum)$", "", name) for name in names() if name.startswith("watchkeeper_")
    }
    assert families - {name.removesuffix("_bucket") for name in asked()} == set()


def test_panels_have_their_own_numbers_and_places() -> None:
    everything = DASHBOARD["panels"]
    assert len({panel["id"] for panel in everything}) == len(everything)
    cells: list[tuple[int, int]] = []
    for panel in everything:
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24
        across = range(place["x"], place["x"] + place["w"])
        cells += itertools.product(across, range(place["y"], place["y"] + place["h"]))
    assert len(set(cells)) == len(cells), "panels overlap"
