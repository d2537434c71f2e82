"""The real Prometheus, from the Debian package of that name: a server of our own, and its tool."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Any


class Prometheus:
    """One server with its folder. `start` it; whoever started it ends the process."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = int(probe.getsockname()[1])

    def start(self, scrape: list[dict[str, Any]], rule_files: Sequence[Path] = ()) -> subprocess.Popen[bytes]:
        """Begin to scrape, on what the folder holds already."""
        configuration = {
            "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
            "scrape_configs": scrape,
            "rule_files": [str(path) for path in rule_files],
        }
        (self.folder / "prometheus.yml").write_text(json.dumps(configuration))  # JSON is YAML too
        with (self.folder / "log").open("wb") as log:
            return subprocess.Popen(
                [
                    needs("prometheus"),
                    f"--config.file={self.folder / 'prometheus.yml'}",
                    f"--storage.tsdb.path={self.folder / 'data'}",
                    "--storage.tsdb.retention.time=50y",
                    f"--web.listen-address=127.0.0.1:{self.port}",
                ],
                stdout=log,
                stderr=log,
            )

    def ask(self, path: str, **parameters: str) -> Any:
        """The `data` of one answer; waits until it listens. What it refuses fails with its words."""
        url = f"http://127.0.0.1:{self.port}/api/v1/{path}?{urllib.parse.urlencode(parameters)}"
        until = time.monotonic() + 60
        while True:
            try:
                with urllib.request.urlopen(url, timeout=10) as answer:
                    return json.load(answer)["data"]
            except urllib.error.HTTPError as error:  # 503 while it starts
                with error:
                    said = error.read().decode()
                if error.code == 400:
                    raise AssertionError(f"{parameters}: {said}") from None
                failed: Exception = error
            except (urllib.error.URLError, ConnectionError) as error:
                failed = error
            if time.monotonic() > until:
                raise AssertionError(f"{failed}\n{(self.folder / 'log').read_text()[-2_000:]}")
            time.sleep(0.2)


def promtool(*arguments: str | Path, given: str = "") -> str:
    """What the tool says; fails with its words when it finds fault."""
    done = subprocess.run(
        [needs("promtool"), *arguments], input=given, capture_output=True, text=True, timeout=120, check=False
    )
    if done.returncode:
        raise AssertionError(done.stdout + done.stderr)
    return done.stdout + done.stderr


def needs(program: str) -> str:
    """The program's path; fails where it is not installed."""
    found = shutil.which(program)
    if found is None:
        raise AssertionError(f"needs {program}: apt-get install --no-install-recommends prometheus")
    return found
