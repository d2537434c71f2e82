"""The metrics of the shop, and their columns for a stretch of scrapes. Names and labels: docs/incident.md."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from bot.incident.columns import Column, Stretch, errors
from bot.incident.deploys import deploys
from bot.incident.noise import Floats
from bot.incident.outcomes import Route, calls, routes
from bot.incident.signals import CHECKOUT_POOL, STOCK_POOL, Shop, mean_of
from bot.incident.story import TICK_S, Knob

SERVICES = ("gateway", "checkout", "stock", "database")
JOBS = (*SERVICES, "nodes")
NODE_OF = {"gateway": "node-a", "checkout": "node-a", "stock": "node-b", "database": "node-c"}
NODES = {"node-a": 4, "node-b": 4, "node-c": 8}
WORKERS = {"gateway": 64, "checkout": 48, "stock": 32}
DAY_S = 86_400.0

FAMILIES: Mapping[str, tuple[str, str]] = {
    "http_requests_total": ("counter", "Requests that were answered, by route and status."),
    "http_request_duration_seconds": ("histogram", "How long requests took, by route."),
    "http_requests_in_flight": ("gauge", "Requests that are being worked on."),
    "request_queue_depth": ("gauge", "Requests that wait for a worker."),
    "errors_total": ("counter", "Requests that failed, by the kind of error."),
    "dependency_requests_total": ("counter", "Calls to another service, by outcome."),
    "dependency_request_duration_seconds": ("histogram", "How long calls to another service took."),
    "db_pool_connections_in_use": ("gauge", "Connections to the database that are taken from the pool."),
    "db_pool_connections_max": ("gauge", "Size of the connection pool."),
    "db_pool_waiting": ("gauge", "Requests that wait for a connection."),
    "db_pool_timeouts_total": ("counter", "Requests that got no connection in time."),
    "db_queries_total": ("counter", "Queries, by the service that asks."),
    "db_query_duration_seconds": ("histogram", "How long queries took."),
    "db_sessions": ("gauge", "Sessions of the database, by client and state."),
    "process_cpu_seconds_total": ("counter", "Processor time of the service."),
    "process_resident_memory_bytes": ("gauge", "Memory of the service."),
    "cpu_pressure_ratio": ("gauge", "Share of the time in which the service waited for a processor."),
    "tls_certificate_not_after_timestamp_seconds": ("gauge", "When the certificate that is served ends."),
    "deploy_info": ("gauge", "Always 1; the labels say which version and commit run."),
    "deploy_timestamp_seconds": ("gauge", "When the running version was deployed."),
    "node_cpu_cores": ("gauge", "Processors of the machine."),
    "node_memory_used_bytes": ("gauge", "Memory in use on the machine."),
    "workload_cpu_cores_used": ("gauge", "Processors that one workload of the machine keeps busy."),
}


def columns(stretch: Stretch) -> Iterator[Column]:
    """Every series of the shop."""
    shop, ways = stretch.shop, routes(stretch.shop)
    for route in ways:
        yield from stretch.requests(route.service, route.path, route.method, route.rate, route.outcomes)
    for service in WORKERS:
        mine = [each for each in ways if each.service == service]
        yield from errors(stretch, service, [(each.path, each.rate, each.outcomes) for each in mine])
        yield from _crowd(stretch, service, mine)
    for call in calls(shop):
        yield from stretch.dependency(call.service, call.dependency, call.rate, call.outcomes)
    yield from _pools(stretch)
    yield from _database(stretch)
    cores = _cores(shop)
    for service in SERVICES:
        yield from _process(stretch, service, cores[service])
        yield from _versions(stretch, service)
    yield from _certificates(stretch)
    yield from _machines(stretch, cores)


def _crowd(stretch: Stretch, service: str, ways: list[Route]) -> Iterator[Column]:
    """Requests that are inside: as many as come, times as long as they stay."""
    shop, inside = stretch.shop, 0.0 * stretch.shop.at
    for way in ways:
        for each in way.outcomes:
            inside = inside + way.rate * each.share * mean_of(each.median + 0.0 * inside)
    inside = np.round(inside * shop.noise(f"{service} in flight", 0.12, 15.0))
    waiting: Floats = np.maximum(inside - WORKERS[service], 0.0)
    waiting = waiting + (shop.noise(f"{service} queue", 0.5, 15.0) > 1.42)
    yield stretch.gauge(service, "http_requests_in_flight", np.minimum(inside, WORKERS[service]))
    yield stretch.gauge(service, "request_queue_depth", waiting)


def _pools(stretch: Stretch) -> Iterator[Column]:
    shop, quiet = stretch.shop, np.zeros_like(stretch.shop.at)
    waiting = np.round(shop.stock_rate * shop.stock_wait_s)
    timeouts = shop.stock_rate * shop.pool_timeouts
    for service, size, used, queue, late in (
        ("checkout", CHECKOUT_POOL, shop.checkout_in_use, quiet, quiet),
        ("stock", STOCK_POOL, shop.stock_in_use, waiting, timeouts),
    ):
        yield stretch.gauge(service, "db_pool_connections_in_use", np.round(used))
        yield stretch.gauge(service, "db_pool_connections_max", size)
        yield stretch.gauge(service, "db_pool_waiting", queue)
        missed = stretch.counted(f"{service} pool timeouts", late)
        yield stretch.counter(service, "db_pool_timeouts_total", missed)


def _database(stretch: Stretch) -> Iterator[Column]:
    shop = stretch.shop
    asked = {call.service: call for call in calls(shop) if call.dependency == "database"}
    total = np.zeros_like(shop.at)
    for client, call in asked.items():
        count = stretch.counted(f"{client} queries", call.rate)
        total = total + count
        yield stretch.counter("database", "db_queries_total", count, client=client)
    reports = stretch.counted("report queries", 15.0 * shop.noise("reports", 0.2))
    yield stretch.counter("database", "db_queries_total", reports, client="reports")
    outcomes = asked["stock"].outcomes
    yield from stretch.histogram("database", "db_query_duration_seconds", total + reports, outcomes)
    held: Floats = np.minimum(shop.knob(Knob.STOCK_LEAK), float(STOCK_POOL)).round()
    nobody: Floats = 0.0 * held
    for client, size, used, idle in (
        ("checkout", CHECKOUT_POOL, np.round(shop.checkout_in_use), nobody),
        ("stock", STOCK_POOL, np.round(shop.stock_in_use), held),
    ):
        active: Floats = np.maximum(used - idle, 0.0)
        unused: Floats = np.maximum(size - active - idle, 0.0)
        states: dict[str, Floats] = {"active": active, "idle in transaction": idle, "idle": unused}
        for state, number in states.items():
            yield stretch.gauge("database", "db_sessions", number, client=client, state=state)


def _cores(shop: Shop) -> dict[str, Floats]:
    """Processors that each service keeps busy."""
    through = 1.0 - shop.tls_failures
    return {
        "gateway": (0.10 + 0.006 * shop.visitors) * shop.noise("gateway cpu", 0.06),
        "checkout": (0.20 + 0.022 * shop.orders * (0.3 + 0.7 * through))
        * shop.knob(Knob.CHECKOUT_CPU)
        * shop.noise("checkout cpu", 0.06),
        "stock": (0.15 + 0.009 * shop.stock_rate)
        * (1.0 - 0.35 * shop.pressure)
        * shop.noise("stock cpu", 0.06),
        "database": (0.25 + 5.5 * shop.database_load) * shop.noise("database cpu", 0.05),
    }


def _process(stretch: Stretch, service: str, cores: Floats) -> Iterator[Column]:
    shop, node = stretch.shop, NODE_OF[service]
    base = {"gateway": 190e6, "checkout": 410e6, "stock": 260e6, "database": 5.2e9}[service]
    memory = np.round(base * shop.noise(f"{service} memory", 0.03, 600.0) / 4096) * 4096
    pressure = shop.pressure if service == "stock" else 0.015 * shop.noise(f"{service} pressure", 0.5)
    yield stretch.counter(service, "process_cpu_seconds_total", np.round(cores * TICK_S, 2), node=node)
    yield stretch.gauge(service, "process_resident_memory_bytes", memory, node=node)
    yield stretch.gauge(service, "cpu_pressure_ratio", np.round(pressure, 4), node=node)


def _versions(stretch: Stretch, service: str) -> Iterator[Column]:
    """A version's series is there as long as it runs."""
    at, found = stretch.shop.at, [each for each in deploys(stretch.shop.story) if each.service == service]
    since = np.full_like(at, found[0].at)
    for number, each in enumerate(found):
        until = found[number + 1].at if number + 1 < len(found) else np.inf
        runs = (at >= each.at) & (at < until)
        since = np.where(at >= each.at, each.at, since)
        yield stretch.gauge(
            service, "deploy_info", np.where(runs, 1.0, np.nan), version=each.version, commit=each.commit[:12]
        )
    yield stretch.gauge(service, "deploy_timestamp_seconds", since)


def _certificates(stretch: Stretch) -> Iterator[Column]:
    story = stretch.shop.story
    ends = story.scenario.stock_certificate_ends
    stock = int(story.moment(ends)) if ends is not None else story.began_at + 44 * DAY_S
    for service, host, when in (
        ("gateway", "shop.example", story.began_at + 61 * DAY_S),
        ("gateway", "old.shop.example", story.began_at + 5.3 * DAY_S),
        ("checkout", "checkout.internal", story.began_at + 38 * DAY_S),
        ("stock", "stock.internal", stock),
        ("database", "database.internal", story.began_at + 122 * DAY_S),
    ):
        yield stretch.gauge(service, "tls_certificate_not_after_timestamp_seconds", np.floor(when), host=host)


def _machines(stretch: Stretch, cores: Mapping[str, Floats]) -> Iterator[Column]:
    shop = stretch.shop
    resizer = 0.3 * shop.noise("resizer", 0.5, 300.0) + shop.knob(Knob.RESIZER_CORES)
    indexer = 0.35 * shop.noise("indexer", 0.3) + shop.knob(Knob.INDEXER_CORES) * shop.noise(
        "indexer busy", 0.04
    )
    busy = [(node, service, cores[service]) for service, node in NODE_OF.items()]
    busy += [("node-a", "image-resizer", resizer), ("node-b", "search-indexer", indexer)]
    busy += [("node-c", "backup-agent", 0.1 * shop.noise("backup", 0.6, 1_800.0))]
    busy += [(node, "log-shipper", 0.08 * shop.noise(f"{node} shipper", 0.4)) for node in NODES]
    for node, count in NODES.items():
        memory = np.round((0.4 + 0.05 * shop.noise(f"{node} memory", 0.4, 1_200.0)) * count * 4e9)
        yield _machine(stretch, "node_cpu_cores", np.full_like(shop.at, count), node=node)
        yield _machine(stretch, "node_memory_used_bytes", memory, node=node)
    for node, workload, used in busy:
        yield _machine(stretch, "workload_cpu_cores_used", np.round(used, 3), node=node, workload=workload)
    for job in JOBS:
        yield stretch.column(job, "up", np.ones_like(shop.at), counter=False)


def _machine(stretch: Stretch, name: str, values: Floats, **labels: str) -> Column:
    return stretch.column("nodes", name, values, counter=False, **labels)
