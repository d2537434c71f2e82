"""A story can be chosen, drawn, kept and told again; its deploys are a real repository."""

import subprocess
from pathlib import Path

import pytest

from bot.incident import RUNBOOKS
from bot.incident.deploys import deploys, make_repository
from bot.incident.incident import Incident
from bot.incident.scenarios import SCENARIOS
from tests.bot.incident.stories import EVENING, rows, story


def git(folder: Path, *arguments: str) -> str:
    done = subprocess.run(["git", "-C", str(folder), *arguments], capture_output=True, text=True, check=True)
    return done.stdout


def test_a_story_that_was_kept_is_told_on_after_a_restart(tmp_path: Path) -> None:
    told = Incident("bad_deploy", 3, EVENING, 2.0)
    told.save(tmp_path / "incident.json")
    again = Incident.load(tmp_path / "incident.json", clock=lambda: EVENING + 86_400)
    assert again is not None
    assert again.story == told.story


def test_a_file_that_is_missing_or_broken_gives_no_story(tmp_path: Path) -> None:
    for text in (None, "{", '{"scenario": "moon", "seed": 1, "began_at": 0, "speed": 1}', "[]"):
        if text is not None:
            (tmp_path / "incident.json").write_text(text)
        assert Incident.load(tmp_path / "incident.json") is None


def test_a_story_that_began_weeks_ago_is_over(tmp_path: Path) -> None:
    Incident("bad_deploy", 3, EVENING).save(tmp_path / "incident.json")
    assert Incident.load(tmp_path / "incident.json", clock=lambda: EVENING + 15 * 86_400) is None


def test_drawing_finds_every_scenario_in_the_end() -> None:
    told = Incident("nothing_wrong", 1, EVENING)
    assert {told.choose() for _ in range(200)} == set(SCENARIOS)


def test_a_scenario_or_speed_that_does_not_exist_is_refused() -> None:
    with pytest.raises(ValueError, match="there are bad_deploy"):
        Incident("moon", 1, EVENING)
    with pytest.raises(ValueError, match="speed"):
        Incident("bad_deploy", 1, EVENING, speed=0)


@pytest.mark.parametrize("name", SCENARIOS)
def test_the_deploy_history_is_a_sound_repository_with_the_dates_of_the_story(
    name: str, tmp_path: Path
) -> None:
    told = story(name)
    make_repository(told, tmp_path)
    assert git(tmp_path, "fsck", "--strict") == ""
    assert git(tmp_path, "status", "--porcelain") == ""
    found = [line.split(" ", 1) for line in git(tmp_path, "log", "--format=%H %ct", "main").splitlines()]
    assert {commit: int(at) for commit, at in found} == {each.commit: each.at for each in deploys(told)}
    for each in deploys(told):
        assert git(tmp_path, "rev-parse", f"{each.service}/{each.version}^{{commit}}").strip() == each.commit
    changed = git(tmp_path, "show", "--stat", "--format=", "main")
    assert "1 file changed" in changed


def test_the_commit_that_runs_is_the_one_that_the_metrics_name(tmp_path: Path) -> None:
    told = story("bad_deploy")
    make_repository(told, tmp_path)
    (row,) = rows(told, 'deploy_info{service="checkout"}')
    shown = git(tmp_path, "show", dict(row.labels)["commit"])
    assert "+            {" in shown
    assert "Version: 2.31.0" in shown


def test_a_repository_is_written_anew_and_another_one_is_left_alone(tmp_path: Path) -> None:
    make_repository(story("bad_deploy"), tmp_path / "ours")
    make_repository(story("nothing_wrong"), tmp_path / "ours")
    assert "2.31.0" not in git(tmp_path / "ours", "log", "--format=%B")
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    git(theirs, "init", "-q")
    with pytest.raises(FileExistsError):
        make_repository(story(), theirs)


def test_runbooks_are_shipped_and_link_only_to_each_other() -> None:
    found = {path.name: path.read_text(encoding="utf-8") for path in RUNBOOKS.glob("*.md")}
    assert len(found) >= 6
    for text in found.values():
        assert text.startswith("# ")
        for link in text.split("](")[1:]:
            assert link.split(")")[0] in found
