"""What the Dockerfile says, held to what the program needs."""

from __future__ import annotations

import re

import pytest

from tests.architecture.sources import ROOT
from tests.deploy.dockerfile import stages

BUILD, FINAL = stages()


@pytest.mark.parametrize("word", ["ENTRYPOINT", "CMD"])
def test_no_shell_stands_between_signals_and_the_program(word: str) -> None:
    assert all(FINAL.command(word))


def test_an_init_is_pid_1_and_is_installed() -> None:
    init, dashes, program = FINAL.command("ENTRYPOINT")
    assert (dashes, program) == ("--", "watchkeeper")
    installed = next(step for step in FINAL.all("RUN") if "apt-get install" in step)
    assert re.search(rf"\b{init}\b", installed)


def test_the_user_is_given_by_number_so_that_a_cluster_can_see_that_it_is_not_root() -> None:
    user, group = FINAL.last("USER").split(":")
    assert int(user) > 0
    assert int(group) > 0
    assert any(f"--uid {user} --gid {group}" in step for step in FINAL.all("RUN"))


def test_it_listens_at_every_address_since_the_loopback_of_a_container_is_nobodys() -> None:
    environment = FINAL.environment({"PATH": ""})
    assert environment["WATCHKEEPER_HOST"] == "0.0.0.0"
    assert environment["WATCHKEEPER_PORT"] == FINAL.last("EXPOSE")


def test_caches_go_where_a_read_only_root_has_room() -> None:
    environment = FINAL.environment({"PATH": ""})
    assert environment["HOME"] == "/tmp"
    assert environment["MPLCONFIGDIR"].startswith("/tmp/")
    assert environment["PYTHONDONTWRITEBYTECODE"]


def test_everything_is_installed_from_the_lock_by_its_hash() -> None:
    [packages, ours] = [step for step in BUILD.all("RUN") if "pip install" in step]
    assert "--require-hashes -r requirements.lock" in packages
    assert "--no-deps --no-build-isolation" in ours


def test_tests_and_whatever_else_lies_about_stay_out_of_the_image() -> None:
    let_in = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    copied = {source for step in BUILD.all("COPY") for source in step.split()[:-1]}
    assert let_in == copied
    assert (ROOT / ".dockerignore").read_text().splitlines()[1] == "*"
