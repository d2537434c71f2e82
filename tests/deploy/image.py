"""The image without an engine: its first stage is built and its entry point runs, both under bubblewrap.

What is the Dockerfile's own: every COPY, every RUN of the first stage but one, and of the second stage ENV,
USER, WORKDIR, ENTRYPOINT, CMD and HEALTHCHECK. What is not: the interpreter and the system below (this
machine's stand for those of `python:3.13-slim`), the download of what requirements.lock names (the installed
copies of exactly these are linked), and the second stage's RUNs (Debian's packages, the user, its folder).
"""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from importlib.metadata import Distribution, distribution
from pathlib import Path

import psutil
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.architecture.sources import ROOT
from tests.deploy.dockerfile import Stage, stages

BELOW = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8"}
"""What the image below ours sets."""
FROM_THE_SYSTEM = ("/etc/ssl", "/etc/resolv.conf", "/etc/hosts", "/etc/nsswitch.conf", "/etc/ld.so.cache")
LOCK = ROOT / "requirements.lock"


class Image:
    """What the Dockerfile describes, as a folder whose `opt` is the container's /opt."""

    def __init__(self, folder: Path, final: Stage) -> None:
        self.folder = folder
        self.final = final
        self.environment = final.environment(BELOW)
        self.entrypoint = final.command("ENTRYPOINT")
        self.user, self.group = final.last("USER").split(":")

    @classmethod
    def build(cls, folder: Path) -> Image:
        """Build the first stage."""
        first, final = stages()
        (folder / "opt").mkdir()
        (folder / "src").mkdir()
        (folder / "python").mkdir()
        base = Path(getattr(sys, "_base_executable", sys.executable)).resolve()
        (folder / "python" / "python").symlink_to(base)
        for step in first.instructions:
            if step.word == "COPY":
                _copy(step.rest, folder / "src")
            elif step.word == "RUN" and "--require-hashes" in step.rest:
                _link_what_is_locked(folder / "opt" / "watchkeeper")
            elif step.word == "RUN":
                _run(folder, first.environment(BELOW), step.rest)
        return cls(folder, final)

    def command(
        self,
        arguments: Sequence[str],
        *,
        tmp: Path,
        environment: Mapping[str, str] | None = None,
        mounts: Iterable[tuple[str, Path, str]] = (),
    ) -> list[str]:
        """The line that runs these arguments in a container of its own: non-root, on a read-only root.

        A mount is (`--bind` or `--ro-bind`, a path here, a path there); `tmp` is what an emptyDir at /tmp is.
        """
        variables = {**self.environment, **(environment or {})}
        return [
            "bwrap", *_system(self.folder),
            "--ro-bind", str(self.folder / "opt"), "/opt",
            "--dir", self.final.last("WORKDIR"),
            *(word for kind, here, there in mounts for word in (kind, str(here), there)),
            "--bind", str(tmp), "/tmp",
            "--remount-ro", "/",
            "--unshare-user", "--uid", self.user, "--gid", self.group, "--cap-drop", "ALL",
            "--unshare-pid", "--as-pid-1", "--unshare-ipc", "--die-with-parent",
            "--unshare-uts", "--hostname", "watchkeeper-0",
            "--clearenv", *(word for pair in variables.items() for word in ("--setenv", *pair)),
            "--chdir", self.final.last("WORKDIR"),
            "--", *arguments,
        ]  # fmt: skip


class Container:
    """One running entry point, seen from outside its namespaces."""

    def __init__(self, process: subprocess.Popen[bytes], log: Path) -> None:
        self._process = process
        self.log = log

    @classmethod
    def start(cls, command: Sequence[str], log: Path) -> Container:
        """Start it; what it says goes to the log."""
        with log.open("ab") as out:
            return cls(subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=out), log)

    @property
    def first(self) -> psutil.Process:
        """PID 1 of the container."""
        for found in psutil.Process(self._process.pid).children(recursive=True):
            status = Path(f"/proc/{found.pid}/status").read_text()
            if re.search(r"^NSpid:.*\t1$", status, re.MULTILINE):
                return found
        raise AssertionError(f"there is no PID 1; the log says: {self.log.read_text()}")

    def processes(self) -> list[psutil.Process]:
        """All others in it, parents before children."""
        return self.first.children(recursive=True)

    def named(self, words: str) -> psutil.Process | None:
        """The last process in line from PID 1 whose command line holds these words."""
        for found in reversed([self.first, *self.processes()]):
            with suppress(psutil.NoSuchProcess):
                if words in " ".join(found.cmdline()):
                    return found
        return None

    @property
    def returncode(self) -> int | None:
        """Its exit code, None while it runs."""
        return self._process.poll()

    async def wait(self, limit_s: float) -> int:
        """Its exit code, once it has ended."""
        async with asyncio.timeout(limit_s):
            while (code := self.returncode) is None:
                await asyncio.sleep(0.02)
        return code

    def end(self) -> None:
        """End it whatever it does."""
        self._process.kill()
        self._process.wait()


def _system(folder: Path) -> list[str]:
    """The machine's own programs and libraries, read only, and `python` as the image below names it."""
    words = ["--ro-bind", "/usr", "/usr"]
    if not sys.base_prefix.startswith("/usr"):
        # Where the image below has it, and where it was installed here: it looks for its own libraries there.
        words += ["--ro-bind", sys.base_prefix, "/usr/local", "--ro-bind", sys.base_prefix, sys.base_prefix]
    words += ["--ro-bind", str(folder / "python"), "/usr/local/bin"]
    for name in ("bin", "sbin", "lib", "lib64"):
        if Path("/", name).is_symlink():
            words += ["--symlink", f"usr/{name}", f"/{name}"]
        elif Path("/", name).is_dir():
            words += ["--ro-bind", f"/{name}", f"/{name}"]
    for path in FROM_THE_SYSTEM:
        words += ["--ro-bind-try", path, path]
    return [*words, "--proc", "/proc", "--dev", "/dev"]


def _run(folder: Path, environment: dict[str, str], line: str) -> None:
    """One RUN of the first stage, as root of a user namespace."""
    command = [
        "bwrap", *_system(folder), "--tmpfs", "/tmp",
        "--bind", str(folder / "opt"), "/opt", "--bind", str(folder / "src"), "/src",
        "--unshare-user", "--uid", "0", "--gid", "0", "--unshare-pid", "--die-with-parent",
        "--clearenv", *(word for pair in environment.items() for word in ("--setenv", *pair)),
        "--chdir", "/src", "--", "/bin/sh", "-ec", line,
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, f"{line}\n{done.stdout[-2000:]}{done.stderr[-2000:]}"


def _copy(rest: str, target: Path) -> None:
    """One COPY from the build context, without what .dockerignore keeps out of it."""
    *sources, last = rest.split()
    ignored = (ROOT / ".dockerignore").read_text().splitlines()
    out = [line.removeprefix("**/") for line in ignored if line.startswith("**/")]
    for source in sources:
        assert f"!{source}" in ignored, f".dockerignore keeps {source} out, and the Dockerfile copies it"
        place = target / last if (ROOT / source).is_dir() else target / last / source
        if (ROOT / source).is_dir():
            shutil.copytree(ROOT / source, place, ignore=shutil.ignore_patterns(*out))
        else:
            shutil.copy2(ROOT / source, place)


def _link_what_is_locked(environment: Path) -> None:
    """Put the installed files of exactly what the lock names into a virtual environment."""
    [packages] = environment.glob("lib/python3.*/site-packages")
    for there in packages.glob("setuptools*"):  # older interpreters bring one of their own
        shutil.rmtree(there)
    for requirement in locked():
        found = distribution(requirement.name)
        assert requirement.specifier.contains(found.version, prereleases=True), (
            f"{requirement} is locked and {found.version} installed; run make test once"
        )
        for file in _files(found):
            (packages / file).parent.mkdir(parents=True, exist_ok=True)
            _link(Path(str(found.locate_file(file))), packages / file)


def locked() -> list[Requirement]:
    """What requirements.lock asks for on this machine."""
    lines = [line.rstrip(" \\") for line in LOCK.read_text().splitlines() if re.match(r"\w", line)]
    wanted = [Requirement(line) for line in lines]
    return [one for one in wanted if one.marker is None or one.marker.evaluate()]


def _files(found: Distribution) -> list[str]:
    """A distribution's files below site-packages: scripts name this machine's interpreter."""
    assert found.files, f"{canonicalize_name(found.name)} has no record of its files"
    return [str(file) for file in found.files if not str(file).startswith(("..", "/"))]


def _link(source: Path, target: Path) -> None:
    if target.exists() or not source.exists():
        return
    try:
        os.link(source, target)
    except OSError:  # another file system
        shutil.copy2(source, target)
