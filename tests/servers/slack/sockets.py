"""Socket Mode: tickets, connections, envelopes and their acknowledgements.

Each envelope goes to any one of the open connections; at most ten may be open.
"""

from __future__ import annotations

import asyncio
import json

from aiohttp import WSMsgType, web

from tests.servers.slack.bell import Bell
from tests.servers.slack.delivery import Attempt, Delivery, Form, new_id, now
from tests.servers.slack.shapes import Json
from tests.servers.slack.workspace import APP

MOST_SOCKETS = 10
HOST = "applink-test-server"


class SocketHub:
    def __init__(self, bell: Bell, ack_timeout: float) -> None:
        self.open: dict[web.WebSocketResponse, web.Request] = {}
        self.ack_timeout = ack_timeout
        self.drop_acks = 0
        self.opened = 0
        self._bell = bell
        self._turn = 0
        self._tickets: set[str] = set()
        self._acks: dict[str, asyncio.Future[object]] = {}

    def ticket(self) -> str:
        """A ticket opens one connection."""
        ticket = new_id()
        self._tickets.add(ticket)
        return ticket

    async def handle(self, request: web.Request) -> web.StreamResponse:
        ticket = request.query.get("ticket", "")
        if ticket not in self._tickets:
            return web.Response(status=403, text="invalid ticket")
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        self._tickets.discard(ticket)
        if len(self.open) >= MOST_SOCKETS:
            await socket.send_json(disconnect("too_many_websockets"))
            await socket.close()
            return socket
        self.open[socket] = request
        self.opened += 1
        try:
            await socket.send_json(self._hello())
            self._bell.ring()
            async for message in socket:
                if message.type is WSMsgType.TEXT:
                    self._received(message.data)
        except ConnectionError:
            pass
        finally:
            del self.open[socket]
            self._bell.ring()
        return socket

    async def send(self, delivery: Delivery, number: int, reason: str | None) -> Attempt:
        usable = [socket for socket in self.open if not socket.closed]
        if not usable:
            return Attempt(now(), "connection_failed")
        self._turn += 1
        envelope_id = new_id()
        acked = self._acks[envelope_id] = asyncio.get_running_loop().create_future()
        sent_at = now()
        try:
            await usable[self._turn % len(usable)].send_json(_envelope(delivery, envelope_id, number, reason))
            async with asyncio.timeout(self.ack_timeout):
                answer = await acked
        except (TimeoutError, ConnectionError):
            return Attempt(sent_at, "timeout")
        finally:
            del self._acks[envelope_id]
        return Attempt(sent_at, None, answer=answer)

    async def refresh(self, reason: str, close: bool) -> None:
        """Ask every connection to come back anew; Slack closes them soon after."""
        for socket in list(self.open):
            await socket.send_json(disconnect(reason))
            if close:
                await socket.close()

    def cut(self) -> None:
        """The network takes every connection away without a word."""
        for request in list(self.open.values()):
            if request.transport is not None:
                request.transport.abort()

    async def stop(self) -> None:
        for socket in list(self.open):
            await socket.close()

    def _hello(self) -> Json:
        return {
            "type": "hello",
            "num_connections": len(self.open),
            "debug_info": {"host": HOST, "build_number": 1, "approximate_connection_time": 18060},
            "connection_info": {"app_id": APP},
        }

    def _received(self, data: str) -> None:
        message = json.loads(data)
        waiting = self._acks.get(message.get("envelope_id", ""))
        if waiting is None or waiting.done():
            return
        if self.drop_acks > 0:
            self.drop_acks -= 1
            return
        waiting.set_result(message.get("payload"))


def disconnect(reason: str) -> Json:
    return {"type": "disconnect", "reason": reason, "debug_info": {"host": HOST}}


def _envelope(delivery: Delivery, envelope_id: str, number: int, reason: str | None) -> Json:
    envelope: Json = {
        "envelope_id": envelope_id,
        "type": delivery.form.value,
        "accepts_response_payload": delivery.form is Form.INTERACTION,
        "payload": delivery.body,
    }
    if delivery.form is Form.EVENT:
        envelope |= {"retry_attempt": number, "retry_reason": reason or ""}
    return envelope
