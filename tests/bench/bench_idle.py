"""What idle workers cost their Postgres: statements a second of each, by the server's own count.

Ten real `serve` processes without Redis, which therefore poll, and with nothing to do. `pg_stat_statements`
counts every statement of the database; BEGIN, COMMIT, ROLLBACK and the like are told apart from queries.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path

import asyncpg
import pytest

from tests.bench.rig import Serve, verdict
from tests.servers.anthropic.server import AnthropicServer
from tests.servers.postgres import PostgresServer
from tests.servers.slack import SlackServer

WORKERS = 10
CALM_S, MEASURED_S = 5.0, 30.0
AIM = 1.0
COUNTED = {"shared_preload_libraries": "pg_stat_statements", "pg_stat_statements.track_utility": "on"}
TRANSACTION_CONTROL = ("begin", "commit", "rollback", "set", "start transaction", "savepoint", "release")
CALLS = """
select calls, query, rows from pg_stat_statements s join pg_database d on d.oid = s.dbid
where d.datname = 'fleet' order by calls desc
"""
TRANSACTIONS = "select xact_commit + xact_rollback from pg_stat_database where datname = 'fleet'"


@pytest.mark.timeout(240)
async def test_idle_workers(tmp_path: Path) -> None:
    server = PostgresServer(settings=COUNTED).start()
    try:
        url = await server.create("fleet")
        await server.execute("create extension pg_stat_statements")
        statements, transactions = await counted_while_idle(server, url, tmp_path)
    finally:
        server.close()
    tell(statements, transactions)


async def counted_while_idle(
    server: PostgresServer, url: str, folder: Path
) -> tuple[Sequence[asyncpg.Record], int]:
    """Start the workers, let them come to rest, count for a while."""
    async with SlackServer() as slack, AnthropicServer() as model, AsyncExitStack() as stack:
        for number in range(WORKERS):
            home = folder / f"worker {number}"
            home.mkdir()
            environment = {
                "SLACK_BOT_TOKEN": slack.bot_token,
                "SLACK_APP_TOKEN": slack.app_token,
                "SLACK_API_URL": slack.api_url,
                "ANTHROPIC_BASE_URL": model.url,
                "DATABASE_URL": url,
            }
            serve = Serve(home, environment)
            stack.callback(serve.stop)
            await serve.start(within_s=60)
        await asyncio.sleep(CALM_S)
        connection = await asyncpg.connect(server.url("postgres"))
        try:
            await connection.execute("select pg_stat_statements_reset()")
            before = await connection.fetchval(TRANSACTIONS)
            await asyncio.sleep(MEASURED_S)
            statements = await connection.fetch(CALLS)
            await asyncio.sleep(1.5)  # sessions tell of their transactions at most once a second
            return statements, int(await connection.fetchval(TRANSACTIONS)) - int(before)
        finally:
            await connection.close()


def tell(statements: Sequence[asyncpg.Record], transactions: int) -> None:
    def a_second(calls: int) -> float:
        return calls / WORKERS / MEASURED_S

    control = [one for one in statements if one["query"].lower().startswith(TRANSACTION_CONTROL)]
    queries = [one for one in statements if one not in control]
    print(f"\n{WORKERS} idle workers for {MEASURED_S:g} s, without Redis; a second and worker:")
    for one in statements:
        print(f"  {a_second(one['calls']):6.3f}  {' '.join(one['query'].split())[:110]}")
    of_control = a_second(sum(one["calls"] for one in control))
    of_queries = a_second(sum(one["calls"] for one in queries))
    print(f"  transactions {a_second(transactions):.2f}, BEGIN and the like {of_control:.2f}")
    print(f"  queries {of_queries:.2f}")
    print(" ", verdict("queries a second and worker", of_queries, AIM))
    assert of_queries > 0, "the workers did not look at all"
