"""The image's entry point as PID 1, not root, on a read-only root: it drains and leaves nothing behind.

There is no container engine here; `tests.deploy.image` says what stands for what. CI installs the Debian
packages bubblewrap and tini.
"""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import aiohttp
import psutil
import pytest

from tests.deploy import manifests
from tests.deploy.image import Container, Image
from tests.servers.anthropic.blocks import call, text
from tests.servers.anthropic.reply import reply
from tests.stories.room import PROBE, Room, eventually, free_port
from tests.stories.telling import CARD, ask, must_be_well, until_reached

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120), pytest.mark.xdist_group("image")]

CONFIG = "/etc/watchkeeper/watchkeeper.toml"
CHART = """
import asyncio, sys
from bot.tools import chart
from bot.tools.prometheus_stats import Series
png = asyncio.run(chart.draw("errors", "1/s", [Series({"service": "checkout"}, ((0.0, 1.0), (60.0, 2.0)))]))
sys.exit(0 if png else "no chart")
"""


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Image:
    return Image.build(tmp_path_factory.mktemp("image"))


class Ship(Room):
    """A room whose Watchkeeper runs in the container. The room's folder is the container's /tmp."""

    container: Container

    async def sail(self, image: Image, *probe_options: str) -> None:
        """Start the container and wait until Slack can reach it."""
        self.cast_off(image, *probe_options)
        await self._until_reachable()

    def cast_off(self, image: Image, *probe_options: str) -> None:
        """Start the container, its configuration mounted as a ConfigMap would be."""
        written = self.folder / "config" / "watchkeeper.toml"
        written.parent.mkdir()
        config = (self.folder / "watchkeeper.toml").read_text()
        config = config.replace(sys.executable, "python").replace(str(PROBE), "/srv/probe.py")
        config = config.replace(str(self.folder), "/tmp")
        log = '"/tmp/tools.jsonl"'
        written.write_text(config.replace(log, ", ".join([log, *map(json.dumps, probe_options)])))
        self.container = Container.start(self.command(image), self.stderr)

    def command(self, image: Image, **more: str) -> list[str]:
        """The image's own entry point and arguments, under what a deployment sets, and more."""
        return image.command(
            [*image.entrypoint, *image.final.command("CMD")],
            tmp=self.folder,
            environment={**self.environment(), **more},
            mounts=[
                ("--ro-bind", self.folder / "config", str(Path(CONFIG).parent)),
                ("--ro-bind", PROBE, "/srv/probe.py"),
            ],
        )

    def environment(self) -> dict[str, str]:
        """What a deployment sets. The address is left to the image."""
        variables = {**super().environment(), "WATCHKEEPER_CONFIG": CONFIG}
        if variables["DATABASE_URL"].startswith("sqlite"):
            variables["DATABASE_URL"] = "sqlite:////tmp/watchkeeper.db"
        return variables


@asynccontextmanager
async def aboard(folder: Path, **changes: Any) -> AsyncIterator[Ship]:
    ship = Ship(folder, own_probe=True, **changes)
    async with ship:
        try:
            yield ship
        finally:
            if hasattr(ship, "container"):
                ship.container.end()


def run(command: list[str]) -> tuple[str, str, int]:
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    return done.stdout, done.stderr, done.returncode


def zombies(container: Container) -> list[str]:
    found = []
    for process in container.processes():
        with suppress(psutil.NoSuchProcess):
            if process.status() == psutil.STATUS_ZOMBIE:
                found.append(f"{process.pid} {process.name()}")
    return found


async def until_no_zombie_stays(container: Container) -> None:
    async def none() -> bool:
        return not zombies(container)

    await eventually(none, timeout=5)


async def test_an_analysis_runs_and_sigterm_to_pid_1_drains_what_runs(tmp_path: Path, image: Image) -> None:
    """One analysis to its answer, then a second one that a shutdown meets while a tool call runs."""
    async with aboard(tmp_path) as ship:
        await ship.sail(image)
        ship.model.script(
            reply(call("probe__fast", {"text": "well"})),
            reply(text("it is the deploy")),
            reply(call("probe__hold", {"name": "held", "directory": "/tmp"})),
        )
        await ask(ship)
        await ship.until_settled("completed")
        await ask(ship, "and why is search slow?")
        await until_reached(ship, "held")
        inside = [ship.container.first, *ship.container.processes()]
        ship.container.first.send_signal(signal.SIGTERM)
        await asyncio.sleep(0.3)  # the call may end, and is the safe point
        (tmp_path / "held.release").touch()
        assert await ship.container.wait(20) == 0
        assert [one.pid for one in inside if one.is_running()] == []
        assert await ship.reasons() == ["completed", "drained"]
        assert all(settle["card_released_at"] for settle in await ship.settles())
        assert len(ship.slack.of_type(CARD)) == 2
        assert ship.slack.live_cards() == []
        said = ship.stderr.read_text()
        assert '"turns_left_to_their_lease": 0' in said or "turns_left_to_their_lease=0" in said
        assert "Read-only file system" not in said


async def test_what_a_drained_process_leaves_another_one_of_the_fleet_brings_to_its_end(
    tmp_path: Path, image: Image
) -> None:
    async with aboard(tmp_path, database="postgres") as ship:
        await ship.sail(image)
        ship.model.script(
            reply(call("probe__hold", {"name": "held", "directory": "/tmp"})), reply(text("it is the deploy"))
        )
        await ask(ship)
        await until_reached(ship, "held")
        second = Container.start(
            ship.command(image, WATCHKEEPER_PORT=str(free_port())), tmp_path / "second.log"
        )
        try:
            await ship.slack.wait_for(lambda slack: slack.open_sockets > 1, timeout=20)
            ship.container.first.send_signal(signal.SIGTERM)
            await asyncio.sleep(0.3)
            (tmp_path / "held.release").touch()
            assert await ship.container.wait(20) == 0
            drained, completed = await ship.until_settled("drained", "completed")
            assert completed["resumes_turn_id"] == drained["turn_id"]
            assert completed["worker"] != drained["worker"]
            assert len(ship.slack.of_type(CARD)) == 1
            await must_be_well(ship)
        finally:
            second.end()


async def test_the_user_inside_is_nobody_special_and_can_write_nowhere_but_tmp(
    tmp_path: Path, image: Image
) -> None:
    places = ("/", "/opt/watchkeeper", "/data", "/usr", "/srv", "/tmp")
    look = f"id -u; for place in {' '.join(places)}; do touch $place/x 2>/dev/null && echo $place; done"
    mounts = [("--ro-bind", PROBE, "/srv/probe.py")]
    assert run(image.command(["sh", "-c", look], tmp=tmp_path, mounts=mounts)) == (
        f"{image.user}\n/tmp\n",
        "",
        0,
    )
    assert int(image.user) > 0


async def test_a_chart_finds_room_for_its_caches_in_tmp(tmp_path: Path, image: Image) -> None:
    assert run(image.command(["python", "-c", CHART], tmp=tmp_path)) == ("", "", 0)
    written = {path.name for path in tmp_path.iterdir()}
    assert written - {".cache"} == {"matplotlib"}  # .cache: where the system has fontconfig


async def test_the_running_program_serves_what_the_manifests_ask_for(tmp_path: Path, image: Image) -> None:
    probes = ("startupProbe", "livenessProbe", "readinessProbe")
    paths = {manifests.container()[probe]["httpGet"]["path"] for probe in probes}
    annotations = manifests.manifest("deployment")["spec"]["template"]["metadata"]["annotations"]
    paths.add(annotations["prometheus.io/path"])
    async with aboard(tmp_path) as ship, aiohttp.ClientSession(f"http://127.0.0.1:{ship.port}") as client:
        await ship.sail(image)

        async def all_well() -> bool:
            return [path for path in paths if (await client.get(path)).status != 200] == []

        await eventually(all_well, timeout=10)


async def test_orphans_of_a_tool_server_whose_guard_was_killed_leave_no_zombie(
    tmp_path: Path, image: Image
) -> None:
    """They become children of PID 1, which did not start them and has to wait for them all the same."""
    async with aboard(tmp_path) as ship:
        await ship.sail(image, "--spawn-child")
        container = ship.container

        async def child_runs() -> bool:
            return container.named("sleep 1000") is not None

        await eventually(child_runs, timeout=20)
        guard, orphan = container.named("guard.py"), container.named("sleep 1000")
        assert guard is not None
        assert orphan is not None
        guard.kill()

        async def adopted() -> bool:
            return orphan.ppid() == container.first.pid

        await eventually(adopted, timeout=5)
        orphan.kill()
        await until_no_zombie_stays(container)
        container.first.send_signal(signal.SIGTERM)
        assert await container.wait(20) == 0


async def test_a_signal_that_comes_while_python_still_loads_is_not_lost(tmp_path: Path, image: Image) -> None:
    """The kernel drops what PID 1 has no handler for; a pod would wait for the whole grace period."""
    async with aboard(tmp_path) as ship:
        ship.cast_off(image)
        container = ship.container

        async def program_begins() -> bool:
            with suppress(AssertionError, psutil.Error):
                return container.named("/bin/watchkeeper serve") is not None
            return False

        await eventually(program_begins, timeout=10)
        container.first.send_signal(signal.SIGTERM)
        assert await container.wait(5) in {0, 128 + signal.SIGTERM}
        assert "serving" not in ship.stderr.read_text()


async def test_a_container_that_was_started_again_bears_another_name(tmp_path: Path, image: Image) -> None:
    """Its host name and process id stay the same; under the old name it would keep the dead one's leases."""
    async with aboard(tmp_path) as ship:
        await ship.sail(image)
        await until_one_more_serves(ship, 1)
        ship.container.first.kill()
        await ship.container.wait(5)
        ship.container = Container.start(ship.command(image), ship.stderr)
        await until_one_more_serves(ship, 2)
        first, second = names(ship)
        assert first != second


async def until_one_more_serves(ship: Ship, count: int) -> None:
    async def serves() -> bool:
        return len(names(ship)) == count

    await eventually(serves, timeout=20)


def names(ship: Ship) -> list[str]:
    """The names under which processes said that they serve, in order."""
    said = map(json.loads, ship.stderr.read_text().splitlines())
    return [str(line["worker"]) for line in said if line["event"] == "serving"]


async def test_a_second_signal_ends_it_at_once(tmp_path: Path, image: Image) -> None:
    async with aboard(tmp_path) as ship:
        await ship.sail(image)
        ship.model.script(reply(call("probe__hold", {"name": "held", "directory": "/tmp"})))
        await ask(ship)
        await until_reached(ship, "held")
        ship.container.first.send_signal(signal.SIGTERM)
        await asyncio.sleep(0.5)
        assert ship.container.returncode is None
        ship.container.first.send_signal(signal.SIGTERM)
        assert await ship.container.wait(3) == 128 + signal.SIGTERM


async def test_the_health_check_of_the_image_tells_a_living_service_from_none(
    tmp_path: Path, image: Image
) -> None:
    async with aboard(tmp_path) as ship:
        await ship.sail(image)
        options, _, check = image.final.last("HEALTHCHECK").partition(" CMD ")
        assert "--start-period" in options

        async def healthy() -> int:
            port = {"WATCHKEEPER_PORT": str(ship.port), "http_proxy": "http://127.0.0.1:1"}
            command = image.command(json.loads(check), tmp=tmp_path, environment=port)
            process = await asyncio.create_subprocess_exec(*command, stderr=subprocess.DEVNULL)
            return await process.wait()

        assert await healthy() == 0
        ship.container.first.send_signal(signal.SIGTERM)
        assert await ship.container.wait(20) == 0
        assert await healthy() != 0


async def test_records_lie_in_data_where_no_database_is_named(tmp_path: Path, image: Image) -> None:
    async with aboard(tmp_path) as ship:
        data = tmp_path / "data"
        data.mkdir()
        environment = {name: value for name, value in ship.environment().items() if name != "DATABASE_URL"}
        del environment["WATCHKEEPER_CONFIG"]
        command = image.command(
            [*image.entrypoint, *image.final.command("CMD")],
            tmp=tmp_path,
            environment=environment,
            mounts=[("--bind", data, "/data")],
        )
        ship.container = Container.start(command, ship.stderr)
        await ship.slack.wait_for(lambda slack: slack.open_sockets > 0, timeout=20)
        ship.container.first.send_signal(signal.SIGTERM)
        assert await ship.container.wait(20) == 0
        assert (data / "watchkeeper.db").exists()


async def test_without_a_database_and_a_place_for_one_it_refuses_to_start(
    tmp_path: Path, image: Image
) -> None:
    """Else each process of a fleet would keep a database of its own, and nobody would know."""
    async with aboard(tmp_path) as ship:
        environment = {name: value for name, value in ship.environment().items() if name != "DATABASE_URL"}
        del environment["WATCHKEEPER_CONFIG"]
        command = image.command(
            [*image.entrypoint, *image.final.command("CMD")], tmp=tmp_path, environment=environment
        )
        ship.container = Container.start(command, ship.stderr)
        assert await ship.container.wait(20) == 2
        [line] = ship.stderr.read_text().splitlines()
        assert line.startswith("watchkeeper: DATABASE_URL: ")
