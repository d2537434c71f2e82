"""One request to one checked address, timed: resolve, connect, TLS, first byte, end.

The address that was checked is the one that is connected to: nothing is resolved after the check, no proxy is
asked, and no redirect is followed here.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

import h11

from bot.tools.http_address import Address, Allowed, Target
from bot.tools.http_certificate import Certificate, read

CONNECT_S = 5.0  # for each address, and for TLS
ANSWER_S = 12.0
MOST_ADDRESSES = 4
MOST_BODY = 65_536
MOST_HEAD = 65_536

Resolve: TypeAlias = Callable[[str, int], Awaitable[list[str]]]
Streams: TypeAlias = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Unreachable(Exception):
    """The server could not be spoken to; which is what the probe wanted to know."""


@dataclass(slots=True)
class Answer:
    """What one request brought to light."""

    target: Target
    address: Address | None = None
    status: int = 0
    reason: str = ""
    headers: list[tuple[str, str]] = field(default_factory=list)
    body: bytes = b""
    cut: bool = False
    certificate: Certificate | None = None
    tls: str = ""
    times: dict[str, float] = field(default_factory=dict)


class Fetcher:
    """Fetches from hosts of the allow-list."""

    def __init__(
        self, allowed: Allowed, resolve: Resolve | None = None, trust: ssl.SSLContext | None = None
    ) -> None:
        self._allowed = allowed
        self._resolve = resolve or resolved
        self._trust = trust or ssl.create_default_context()

    async def fetch(self, method: str, answer: Answer) -> None:
        """Fill in the answer as far as it goes; NotAllowed, or Unreachable with the step that failed."""
        target = answer.target
        addresses = await self._addresses(target, answer)
        connection = await self._connect(addresses, answer)
        try:
            streams = await self._secured(connection, answer) if target.scheme == "https" else None
            streams = streams or await asyncio.open_connection(sock=connection, limit=MOST_HEAD)
        except BaseException:
            connection.close()
            raise
        try:
            await _exchange(method, streams, answer)
        finally:
            streams[1].transport.abort()

    async def _addresses(self, target: Target, answer: Answer) -> list[Address]:
        if target.address is not None:
            return [target.address]
        with _timed(answer, "dns"):
            try:
                found = await self._resolve(target.host, target.port)
            except OSError as error:
                raise Unreachable(
                    f"DNS: {target.host} does not resolve ({error.strerror or error})"
                ) from error
        if not found:
            raise Unreachable(f"DNS: {target.host} has no address")
        return self._allowed.addresses(target, found)

    async def _connect(self, addresses: list[Address], answer: Answer) -> socket.socket:
        faults = []
        with _timed(answer, "connect"):
            for address in addresses[:MOST_ADDRESSES]:
                try:
                    connection = await _connected(address, answer.target.port)
                except OSError as error:
                    late = f"no answer within {CONNECT_S:g} s"
                    faults.append(f"{address}: {late if isinstance(error, TimeoutError) else _words(error)}")
                    continue
                answer.address = address
                return connection
        raise Unreachable(f"connect: port {answer.target.port} cannot be reached ({'; '.join(faults)})")

    async def _secured(self, connection: socket.socket, answer: Answer) -> Streams:
        """Over TLS; if the certificate is not trusted, once more without trust, to tell what is wrong."""
        with _timed(answer, "tls"):
            try:
                return await _handshake(connection, self._trust, answer, "")
            except ssl.SSLCertVerificationError as error:
                fault = error.verify_message or str(error)
            except (ssl.SSLError, OSError, EOFError) as error:
                raise Unreachable(f"TLS: the handshake failed ({_words(error)})") from error
            assert answer.address is not None
            try:
                again = await _connected(answer.address, answer.target.port)
                blind = ssl.create_default_context()
                blind.check_hostname = False
                blind.verify_mode = ssl.CERT_NONE
                return await _handshake(again, blind, answer, fault)
            except (ssl.SSLError, OSError, EOFError) as error:
                raise Unreachable(f"TLS: the certificate is not trusted ({fault})") from error


async def resolved(host: str, port: int) -> list[str]:
    """The addresses of a name, as the system knows them."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


async def _connected(address: Address, port: int) -> socket.socket:
    family = socket.AF_INET6 if address.version == 6 else socket.AF_INET
    connection = socket.socket(family, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
    try:
        async with asyncio.timeout(CONNECT_S):
            await asyncio.get_running_loop().sock_connect(connection, (str(address), port))
    except BaseException:
        connection.close()
        raise
    return connection


async def _handshake(
    connection: socket.socket, context: ssl.SSLContext, answer: Answer, fault: str
) -> Streams:
    try:
        streams = await asyncio.open_connection(
            sock=connection,
            ssl=context,
            server_hostname=answer.target.host,
            limit=MOST_HEAD,
            ssl_handshake_timeout=CONNECT_S,
        )
    except BaseException:
        connection.close()
        raise
    secured = streams[1].get_extra_info("ssl_object")
    der = secured.getpeercert(binary_form=True)
    answer.tls = str(secured.version())
    answer.certificate = read(der, fault) if der else None
    return streams


async def _exchange(method: str, streams: Streams, answer: Answer) -> None:
    reader, writer = streams
    talk = h11.Connection(h11.CLIENT, max_incomplete_event_size=MOST_HEAD)
    headers = [
        ("Host", answer.target.authority), ("User-Agent", "watchkeeper-probe"), ("Accept", "*/*"),
        ("Accept-Encoding", "identity"), ("Connection", "close"),
    ]  # fmt: skip
    began = time.monotonic()
    try:
        writer.write(talk.send(h11.Request(method=method, target=answer.target.path, headers=headers)) or b"")
        writer.write(talk.send(h11.EndOfMessage()) or b"")
        await writer.drain()
        async with asyncio.timeout(ANSWER_S):
            await _response(talk, reader, answer, began)
    except TimeoutError as error:
        raise Unreachable(f"HTTP: no whole answer within {ANSWER_S:g} s") from error
    except (OSError, EOFError) as error:
        raise Unreachable(f"HTTP: the connection broke ({_words(error)})") from error
    except h11.ProtocolError as error:
        raise Unreachable(f"HTTP: the server does not speak it ({error})") from error


async def _response(talk: h11.Connection, reader: asyncio.StreamReader, answer: Answer, began: float) -> None:
    while True:
        event = talk.next_event()
        if event is h11.NEED_DATA:
            talk.receive_data(await reader.read(65_536))
            answer.times.setdefault("first byte", time.monotonic() - began)
        elif isinstance(event, h11.Response):
            answer.status, answer.reason = event.status_code, event.reason.decode("ascii", "replace")
            answer.headers = [(_text(name), _text(value)) for name, value in event.headers]
        elif isinstance(event, h11.Data):
            answer.body += bytes(event.data)
            if len(answer.body) >= MOST_BODY:
                answer.body, answer.cut = answer.body[:MOST_BODY], True
                break
        elif isinstance(event, h11.EndOfMessage | h11.ConnectionClosed) or event is h11.PAUSED:
            break
    if not answer.status:
        raise Unreachable("HTTP: the server closed the connection without an answer")
    answer.times["body"] = time.monotonic() - began - answer.times.get("first byte", 0)


@contextlib.contextmanager
def _timed(answer: Answer, step: str) -> Iterator[None]:
    began = time.monotonic()
    try:
        yield
    finally:
        answer.times[step] = time.monotonic() - began


def _text(raw: bytes) -> str:
    return raw.decode("latin-1")


def _words(error: BaseException) -> str:
    if isinstance(error, ssl.SSLError) and error.reason:
        return error.reason.replace("_", " ").lower()
    return getattr(error, "strerror", None) or str(error) or type(error).__name__
