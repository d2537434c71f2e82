"""The tiny process between us and a tool server: the server and its children end with us, even after kill -9.

    python guard.py [--parent PID] -- COMMAND [ARGUMENT…]

Rule 1: the guard lives as long as both its parent and the command do, and no descendant of it lives longer.
Rule 2: it imports only the standard library, and little of that: it starts with every tool server.

On Linux the kernel tells the guard of its parent's death (prctl(2): PR_SET_PDEATHSIG = 1) and gives it the
orphans of its descendants, also those that made themselves daemons (PR_SET_CHILD_SUBREAPER = 36); descendants
are found in /proc. Elsewhere it watches its parent's id and signals its process group. Standard input and
output are the command's own: the guard neither reads nor writes them.
"""

import contextlib
import ctypes
import os
import select
import signal
import sys
import time

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
LOOK_EVERY_S = 0.5  # for the parent, where the kernel does not tell
TERM_GRACE_S = 0.7  # between SIGTERM and SIGKILL; the MCP SDK kills us 2 s after its own SIGTERM
GIVE_UP_S = 5.0  # something that SIGKILL does not end sits in the kernel
ENDINGS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT)


def main(argv: list[str]) -> int:
    """Run the command under guard and return its exit code."""
    parent, command = _arguments(argv)
    if not command:
        sys.stderr.write("usage: guard.py [--parent PID] -- COMMAND [ARGUMENT…]\n")
        return 2
    _own_group()
    _prctl(PR_SET_CHILD_SUBREAPER, 1)
    woken = _listen()
    _prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != parent:  # it died before the kernel was asked to tell
        return 1
    child = os.fork()
    if child == 0:
        _become(command, os.getppid())
    code = _watch(parent, child, woken)
    _end_descendants()
    return code


def _arguments(argv: list[str]) -> tuple[int, list[str]]:
    if argv[:1] == ["--parent"] and len(argv) > 1:
        return int(argv[1]), argv[3:] if argv[2:3] == ["--"] else argv[2:]
    return os.getppid(), argv[1:] if argv[:1] == ["--"] else argv


def _own_group() -> None:
    if os.getpgrp() != os.getpid():
        os.setpgid(0, 0)


def _prctl(option: int, value: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)


class _Ending:
    """Set by a signal that asks the guard to end."""

    asked = False


def _listen() -> int:
    """Turn signals into bytes on a pipe; returns its reading end."""
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    os.set_blocking(writing, False)
    signal.set_wakeup_fd(writing, warn_on_full_buffer=False)

    def asked(_number: int, _frame: object) -> None:
        _Ending.asked = True

    for number in ENDINGS:
        signal.signal(number, asked)
    signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
    return reading


def _become(command: list[str], guard: int) -> None:
    """In the child: take back the signals, die with the guard, and become the command."""
    try:
        signal.set_wakeup_fd(-1)
        for number in (*ENDINGS, signal.SIGCHLD, signal.SIGPIPE):
            signal.signal(number, signal.SIG_DFL)
        _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() == guard:
            os.execvp(command[0], command)
    except OSError as error:
        sys.stderr.write(f"cannot start {command[0]}: {error.strerror}\n")
        sys.stderr.flush()
    os._exit(127)


def _watch(parent: int, child: int, woken: int) -> int:
    """Wait until the command ends, the parent dies or a signal comes; the exit code to pass on."""
    while True:
        ended, status = _reap(child)
        if ended:
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else 128 - code
        if _Ending.asked or os.getppid() != parent:
            return 128 + signal.SIGTERM
        select.select([woken], [], [], LOOK_EVERY_S)
        with contextlib.suppress(BlockingIOError):
            os.read(woken, 4096)


def _reap(child: int) -> tuple[bool, int]:
    """Collect everything that has ended; whether the command is among it, and its status."""
    found, status = False, 0
    while True:
        try:
            pid, what = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return found, status
        if pid == 0:
            return found, status
        if pid == child:
            found, status = True, what


def _end_descendants() -> None:
    """SIGTERM to all, SIGKILL to those that are still there, again and again until none is left."""
    if sys.platform != "linux":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        os.killpg(0, signal.SIGTERM)
        return
    began = time.monotonic()
    _send(_descendants(), signal.SIGTERM)
    while (waited := time.monotonic() - began) < GIVE_UP_S:
        _reap(0)
        left = _descendants()
        if not left:
            _reap(0)  # the last ones: where nobody else does, they would stay as zombies
            return
        if waited >= TERM_GRACE_S:
            _send(left, signal.SIGKILL)
        time.sleep(0.02)


def _send(pids: list[int], number: int) -> None:
    for pid in pids:
        with contextlib.suppress(OSError):  # it may have ended meanwhile
            os.kill(pid, number)


def _descendants() -> list[int]:
    """All processes below this one, from the parent ids in /proc (proc(5))."""
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", "rb") as file:
                    # The name in brackets may hold anything, so count from the last bracket.
                    state, parent = file.read().rpartition(b")")[2].split()[:2]
            except (OSError, ValueError):
                continue
            if state not in (b"Z", b"X"):
                children.setdefault(int(parent), []).append(int(name))
    found: list[int] = []
    waiting = [os.getpid()]
    while waiting:
        below = children.get(waiting.pop(), [])
        found += below
        waiting += below
    return found


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
