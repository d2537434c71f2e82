"""Taking an address to listen at, or saying in one line why it cannot be had."""

from __future__ import annotations

import errno
import socket

from bot.errors import Unusable

BACKLOG = 1024  # a burst of events waits to be taken; one that overflows tries again a second later


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens; raises Unusable with the mend. Who connects before it is served waits."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listener = socket.socket(family, kind, protocol)
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(address)
            listener.listen(BACKLOG)
        except OSError:
            listener.close()
            raise
    except OSError as error:
        raise Unusable(why_not(error, host, port)) from None
    listener.setblocking(False)
    return listener


def why_not(error: OSError, host: str, port: int) -> str:
    """Why this address cannot be had, and the mend."""
    if isinstance(error, socket.gaierror) or error.errno == errno.EADDRNOTAVAIL:
        return f"WATCHKEEPER_HOST: this machine has no address {host}; use 127.0.0.1, or 0.0.0.0 for all"
    if error.errno == errno.EADDRINUSE:
        return f"WATCHKEEPER_PORT: {port} on {host} is in use; stop what uses it or choose another port"
    if error.errno in {errno.EACCES, errno.EPERM}:
        return f"WATCHKEEPER_PORT: {port} may not be opened by this user; choose a port above 1023"
    return f"WATCHKEEPER_HOST, WATCHKEEPER_PORT: cannot listen at {host}:{port} ({error.strerror or error})"
