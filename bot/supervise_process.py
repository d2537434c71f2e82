"""One child process at a time, started again when it dies: what a container runtime does, for one machine.

Rule 1: a child that ended of its own accord ends us too, with its exit code; one that was killed, or asked
for it, is started again.
Rule 2: our first signal lets the child drain, a second one ends it at once. It hears no signal of the
terminal itself, and ends when we are gone.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from types import FrameType

AT_ONCE_S = 5.0  # a child that lived so long is started again without a pause
FIRST_PAUSE_S = 0.2
LONGEST_PAUSE_S = 10.0


class Supervisor:
    """Runs `work` in a child; `restart_code` is the exit code with which it asks for another one.

    `work` gets the number of the child, from 0. Nothing may have started a thread before `run`.
    """

    def __init__(self, work: Callable[[int], int], restart_code: int, tell: Callable[[str], None]) -> None:
        self._work = work
        self._restart_code = restart_code
        self._tell = tell
        self._child = 0
        self._signals = 0

    def run(self) -> int:
        """Run children until one ends of its own accord or we are told to; returns the exit code."""
        before = {number: signal.signal(number, self._pass_on) for number in (signal.SIGTERM, signal.SIGINT)}
        number, pause = 0, FIRST_PAUSE_S
        while True:
            began = time.monotonic()
            code = self._run_child(number)
            if self._signals or (code >= 0 and code != self._restart_code):
                break
            number += 1
            pause = FIRST_PAUSE_S if time.monotonic() - began > AT_ONCE_S else min(LONGEST_PAUSE_S, pause * 2)
            if code < 0:
                self._tell(f"the worker was ended by {_name(-code)}; starting it again")
                time.sleep(pause)
        for one, handler in before.items():
            signal.signal(one, handler)
        return code if code >= 0 else 128 - code

    def _run_child(self, number: int) -> int:
        """One child from its start to its end; a negative code names the signal that ended it."""
        ours, theirs = os.pipe()
        self._child = os.fork()
        if self._child == 0:
            os.close(theirs)
            _become_a_child(ours)
            sys.exit(self._work(number))  # a failure is told where every command's is
        os.close(ours)
        if self._signals:  # came before there was a child to tell
            os.kill(self._child, signal.SIGTERM)
        _, status = os.waitpid(self._child, 0)
        self._child = 0
        os.close(theirs)
        return os.waitstatus_to_exitcode(status)

    def _pass_on(self, number: int, _: FrameType | None) -> None:
        self._signals += 1
        if self._child:
            os.kill(self._child, signal.SIGTERM)


def _become_a_child(parent: int) -> None:
    """Hear no signal of the terminal, and drain when the parent's pipe ends."""
    end_at_signals()
    os.setpgrp()  # Ctrl-C reaches us through our parent, once

    def wait() -> None:
        os.read(parent, 1)
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=wait, name="end with the parent", daemon=True).start()


def end_at_signals() -> None:
    """Until something runs that has to be drained, a signal just ends this process, and well."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: os._exit(0))


def _name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
