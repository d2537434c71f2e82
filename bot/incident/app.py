"""The incident over HTTP: an application of its own, or a part of another one's addresses."""

from __future__ import annotations

from collections.abc import Mapping

from aiohttp import web

from bot.incident.deploys import running
from bot.incident.exposition import CONTENT_TYPE, exposition
from bot.incident.incident import Incident
from bot.incident.loki_api import loki_routes
from bot.incident.metrics import JOBS, SERVICES
from bot.incident.prometheus_api import prometheus_routes
from bot.incident.traces_api import traces_routes

ADDRESSES: Mapping[str, str] = {
    "prometheus": "prometheus/api/v1/query?query=up",
    "logs": 'loki/api/v1/query_range?query={service="checkout"}',
    "traces": "traces/api/traces?service=checkout&limit=5",
    "metrics": "shop/checkout/metrics",
    "health": "shop/checkout/healthz",
    "version": "shop/checkout/version",
}


def incident_app(incident: Incident) -> web.Application:
    """Serves whatever story the incident tells at the time of each request. Everything in it only reads."""
    app = web.Application()
    app.add_routes(
        [*prometheus_routes(incident), *loki_routes(incident), *traces_routes(incident), *_shop(incident)]
    )
    return app


def _shop(incident: Incident) -> list[web.RouteDef]:
    async def index(_: web.Request) -> web.Response:
        return web.json_response({"shop": list(SERVICES), "addresses": ADDRESSES})

    async def metrics(request: web.Request) -> web.Response:
        job = request.match_info["service"]
        if job not in JOBS:
            raise web.HTTPNotFound(text=f"there is no service {job!r}; there are {', '.join(JOBS)}\n")
        page = exposition(incident.samples.upto(incident.now()), job)
        return web.Response(body=page.encode(), headers={"Content-Type": CONTENT_TYPE})

    async def health(request: web.Request) -> web.Response:
        service = _service(request)
        return web.json_response({"service": service, "status": "ok"})

    async def version(request: web.Request) -> web.Response:
        service = _service(request)
        found = running(incident.story, service, incident.now())
        told = {"service": service, "version": found.version, "commit": found.commit[:12]}
        return web.json_response(told)

    return [
        web.get("/", index),
        web.get("/shop/{service}/metrics", metrics),
        web.get("/shop/{service}/healthz", health),
        web.get("/shop/{service}/version", version),
    ]


def _service(request: web.Request) -> str:
    name = request.match_info["service"]
    if name not in SERVICES:
        raise web.HTTPNotFound(text=f"there is no service {name!r}; there are {', '.join(SERVICES)}\n")
    return name
