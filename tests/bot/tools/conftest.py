"""A real Prometheus for these tests: the Debian program, on a free port, scraping itself and our page."""

import http.server
import json
import math
import shutil
import socket
import subprocess
import threading
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

CONFIGURATION = """
global: {{scrape_interval: 1s, evaluation_interval: 1s}}
rule_files: [{rules}]
scrape_configs:
  - job_name: prometheus
    static_configs: [{{targets: ["127.0.0.1:{port}"]}}]
  - job_name: shop
    static_configs: [{{targets: ["127.0.0.1:{page}"]}}]
  - job_name: gone
    static_configs: [{{targets: ["127.0.0.1:1"]}}]
"""
RULES = """
groups:
  - name: test
    rules:
      - alert: ShopIsSlow
        expr: shop_latency_seconds > 0
        labels: {severity: page}
        annotations: {summary: The shop answers late}
"""


class Page(http.server.BaseHTTPRequestHandler):
    """A small metrics page: a wave, thirty series, and a counter."""

    def do_GET(self) -> None:
        """Answer a scrape."""
        wave = 1 + math.sin(time.time())
        lines = [f'shop_latency_seconds{{service="checkout"}} {wave + 1}', f"shop_orders_total {time.time()}"]
        lines += [f'shop_items{{shelf="{number:02d}"}} {number}' for number in range(30)]
        body = (
            "# TYPE shop_orders_total counter\n# HELP shop_orders_total Orders so far.\n"
            + "\n".join(lines)
            + "\n"
        ).encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/plain; version=0.0.4")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@dataclass(frozen=True)
class Prometheus:
    """Where it listens, and a way to ask it directly."""

    url: str

    def ask(self, path: str) -> Any:
        """The `data` of one answer of its API."""
        with urllib.request.urlopen(f"{self.url}/api/v1/{path}", timeout=5) as answer:
            return json.load(answer)["data"]


def free_port() -> int:
    """A port that nobody uses at the moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture(scope="session")
def prometheus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    """Up, with a few seconds of data."""
    program = shutil.which("prometheus")
    if program is None:
        pytest.fail(
            "these tests need the prometheus program: apt-get install --no-install-recommends prometheus"
        )
    folder = tmp_path_factory.mktemp("prometheus")
    page = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Page)
    thread = threading.Thread(target=page.serve_forever, daemon=True)
    thread.start()
    child = start(program, folder, page.server_port)
    port = int((folder / "port").read_text())
    server = Prometheus(f"http://127.0.0.1:{port}")
    try:
        wait_for_data(server, folder / "log")
        yield server
    finally:
        child.terminate()
        child.wait(10)
        page.shutdown()
        page.server_close()
        thread.join(5)


def start(program: str, folder: Path, page: int) -> subprocess.Popen[bytes]:
    """Start the program with its configuration and data in the folder."""
    port = free_port()
    (folder / "port").write_text(str(port))
    (folder / "rules.yml").write_text(RULES)
    (folder / "prometheus.yml").write_text(
        CONFIGURATION.format(port=port, page=page, rules=json.dumps(str(folder / "rules.yml")))
    )
    with (folder / "log").open("wb") as log:
        return subprocess.Popen(
            [
                program,
                f"--config.file={folder / 'prometheus.yml'}",
                f"--storage.tsdb.path={folder / 'data'}",
                f"--web.listen-address=127.0.0.1:{port}",
            ],
            stdout=log,
            stderr=log,
        )


def wait_for_data(server: Prometheus, log: Path) -> None:
    """Until there are a few scrapes and the alert fires."""
    until = time.monotonic() + 30
    while time.monotonic() < until:
        try:
            points = server.ask("query?query=count_over_time(shop_orders_total[1m])")["result"]
            down = server.ask('query?query=up{job="gone"}')["result"]
            if points and float(points[0]["value"][1]) >= 4 and down and server.ask("alerts")["alerts"]:
                return
        except OSError:
            pass
        time.sleep(0.2)
    pytest.fail(f"prometheus has no data: {log.read_text()[-2000:]}")
