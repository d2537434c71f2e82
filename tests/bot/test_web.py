"""The HTTP side on a real socket: alive, ready, numbers, and Slack's events only where they are wanted."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from io import BytesIO

import pytest
from aiohttp import ClientSession, web

from bot.errors import Unusable
from bot.measures import Fleet, Measures
from bot.web.server import LARGEST_BODY, Handler, Server, make_app


def _app(
    reasons: Callable[[], list[str]] = list, add_routes: Callable[[web.Application], None] = lambda _: None
) -> web.Application:
    async def refresh() -> None:
        pass

    return make_app(reasons=reasons, measures=Measures(), refresh=refresh, add_routes=add_routes)


@asynccontextmanager
async def serving(
    *, reasons: Callable[[], list[str]] = list, slack_events: Handler | None = None
) -> AsyncIterator[tuple[ClientSession, str]]:
    def add_routes(app: web.Application) -> None:
        if slack_events is not None:
            app.router.add_post("/slack/events", slack_events)

    server = await Server.start(_app(reasons, add_routes), host="127.0.0.1", port=0)
    host, port = server.address
    async with ClientSession() as session:
        yield session, f"http://{host}:{port}"
    await server.close()


async def test_a_process_that_lives_says_so() -> None:
    async with serving() as (session, url), session.get(f"{url}/healthz") as answer:
        assert answer.status == 200
        assert await answer.json() == {"alive": True}


async def test_no_answer_names_the_program_that_serves_it() -> None:
    async with serving() as (session, url):
        for path in ("/healthz", "/nowhere"):
            async with session.get(url + path) as answer:
                assert "Server" not in answer.headers


async def test_a_process_is_ready_while_nothing_speaks_against_it() -> None:
    reasons: list[str] = []
    async with serving(reasons=lambda: reasons) as (session, url):
        async with session.get(f"{url}/readyz") as answer:
            assert (answer.status, await answer.json()) == (200, {"ready": True, "reasons": []})
        reasons.append("database: not reachable")
        async with session.get(f"{url}/readyz") as answer:
            assert answer.status == 503
            assert await answer.json() == {"ready": False, "reasons": ["database: not reachable"]}


async def test_a_living_process_stays_alive_while_it_is_not_ready() -> None:
    async with (
        serving(reasons=lambda: ["draining"]) as (session, url),
        session.get(f"{url}/healthz") as answer,
    ):
        assert answer.status == 200


async def test_events_are_only_taken_when_there_is_somebody_to_take_them() -> None:
    async with serving() as (session, url), session.post(f"{url}/slack/events", data="{}") as answer:
        assert answer.status == 404


async def test_events_go_to_their_handler_whole() -> None:
    async def handler(request: web.Request) -> web.Response:
        return web.Response(text=(await request.text())[::-1])

    async with serving(slack_events=handler) as (session, url):
        async with session.post(f"{url}/slack/events", data="abc") as answer:
            assert await answer.text() == "cba"
        async with session.get(f"{url}/slack/events") as answer:
            assert answer.status == 405


async def test_a_body_beyond_the_limit_is_refused() -> None:
    async def handler(request: web.Request) -> web.Response:
        await request.read()
        return web.Response()

    async with (
        serving(slack_events=handler) as (session, url),
        session.post(f"{url}/slack/events", data=BytesIO(b"x" * (LARGEST_BODY + 1))) as answer,
    ):
        assert answer.status == 413


async def test_a_fault_of_ours_tells_nothing_to_the_outside() -> None:
    async def handler(_: web.Request) -> web.Response:
        raise RuntimeError("secret detail")

    async with (
        serving(slack_events=handler) as (session, url),
        session.post(f"{url}/slack/events", data="{}") as answer,
    ):
        assert (answer.status, await answer.json()) == (500, {"error": "internal"})


@pytest.mark.parametrize(
    "accepts, content_type",
    [
        ("*/*", "text/plain; version=0.0.4; charset=utf-8"),
        ("application/openmetrics-text;version=1.0.0", "application/openmetrics-text; version=1.0.0"),
    ],
)
async def test_numbers_are_there_in_the_form_that_is_asked_for(accepts: str, content_type: str) -> None:
    async with (
        serving() as (session, url),
        session.get(f"{url}/metrics", headers={"Accept": accepts}) as answer,
    ):
        assert answer.headers["Content-Type"].startswith(content_type)
        assert "watchkeeper_ready 1.0" in (await answer.text()).splitlines()


async def test_whether_it_is_ready_is_looked_up_for_every_scrape() -> None:
    reasons = ["draining"]
    async with serving(reasons=lambda: reasons) as (session, url):
        async with session.get(f"{url}/metrics") as answer:
            assert "watchkeeper_ready 0.0" in (await answer.text()).splitlines()
        reasons.clear()
        async with session.get(f"{url}/metrics") as answer:
            assert "watchkeeper_ready 1.0" in (await answer.text()).splitlines()


async def test_numbers_that_are_only_known_when_asked_for_are_brought_up_to_date_first() -> None:
    measures = Measures()

    async def refresh() -> None:
        measures.fleet_is(Fleet(7.0, 0.0, 0))

    app = make_app(reasons=list, measures=measures, refresh=refresh)
    server = await Server.start(app, host="127.0.0.1", port=0)
    host, port = server.address
    async with ClientSession() as session, session.get(f"http://{host}:{port}/metrics") as answer:
        assert "watchkeeper_outbox_age_seconds 7.0" in (await answer.text()).splitlines()
    await server.close()


async def test_a_port_in_use_is_named_with_the_mend() -> None:
    first = await Server.start(_app(), host="127.0.0.1", port=0)
    _, port = first.address
    with pytest.raises(
        Unusable, match=rf"^WATCHKEEPER_PORT: {port} on 127.0.0.1 is in use; .* another port$"
    ):
        await Server.start(_app(), host="127.0.0.1", port=port)
    await first.close()


async def test_an_address_of_another_machine_is_named_with_the_mend() -> None:
    with pytest.raises(Unusable, match=r"^WATCHKEEPER_HOST: this machine has no address 192\.0\.2\.1; use "):
        await Server.start(_app(), host="192.0.2.1", port=0)
