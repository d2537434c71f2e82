"""The door of the Web API: faults, token, scope, pace, then the method itself."""

from __future__ import annotations

import asyncio

from aiohttp import web

from tests.servers.slack.args import Args, parsed
from tests.servers.slack.calls import Call, Violation
from tests.servers.slack.faults import Fault, Kind
from tests.servers.slack.methods import METHODS, Method
from tests.servers.slack.shapes import Json, Refused
from tests.servers.slack.state import State

BOT_TOKEN = "xoxb-1111111111-2222222222-watchkeeper"
APP_TOKEN = "xapp-1-A0WATCH001-3333333333-watchkeeper"
TOKENS = {"xoxb": BOT_TOKEN, "xapp": APP_TOKEN}


class Api:
    def __init__(self, state: State) -> None:
        self._state = state

    async def handle(self, request: web.Request) -> web.StreamResponse:
        state, name = self._state, request.match_info["method"]
        try:
            args, raw = await parsed(request)
        except Refused as refused:
            return web.json_response(refused.reply())
        call = Call(name, args, raw, _token(request, args), host=request.host)
        state.calls.append(call)
        state.bell.ring()
        try:
            return await self._answer(request, call)
        except asyncio.CancelledError:
            call.lost = True
            raise
        finally:
            state.bell.ring()

    async def _answer(self, request: web.Request, call: Call) -> web.StreamResponse:
        faults = self._state.faults
        if delay := faults.take(Kind.DELAY, call.method, call.args):
            await asyncio.sleep(delay.seconds)
        hang = faults.take(Kind.HANG, call.method, call.args)
        if hang and not hang.applied:
            await hang.held()
        limited = self._limited(call)
        if limited is not None:
            return self._reply(request, call, 429, {"Retry-After": str(limited)})
        if failed := faults.take(Kind.FAIL, call.method, call.args):
            return self._failed(request, call, failed)
        lose = faults.take(Kind.LOSE_REPLY, call.method, call.args)
        call.decided(self._run(call))
        if hang and hang.applied:
            call.lost = True
            await hang.held()
            call.lost = False
        if lose:
            return _cut_off(request, call)
        return self._reply(request, call, 200)

    def _limited(self, call: Call) -> int | None:
        limits, channel = self._state.limits, call.args.get("channel")
        early = limits.too_early(call.method, channel)
        forced = self._state.faults.take(Kind.RATE_LIMIT, call.method, call.args)
        if early > 0:
            what = f"called {early:.2f} s before Retry-After had passed"
            self._state.violations.append(Violation(call.method, what, call.args))
        if forced is not None:
            limits.block(call.method, forced.seconds)
            wait: int | None = int(forced.seconds)
        elif early > 0:
            wait = max(1, round(early))
        else:
            wait = limits.retry_after(call.method, channel)
        if wait is not None:
            call.decided({"ok": False, "error": "ratelimited"}, 429)
        return wait

    def _failed(self, request: web.Request, call: Call, fault: Fault) -> web.Response:
        if fault.applied:
            self._run(call)
            call.lost = True
        call.decided({"ok": False, "error": fault.error}, fault.status)
        if fault.status >= 500:
            return web.Response(status=fault.status, text=fault.error)
        return self._reply(request, call, fault.status)

    def _run(self, call: Call) -> Json:
        try:
            method = METHODS.get(call.method)
            if method is None:
                raise Refused("unknown_method", req_method=call.method)
            self._authorize(call, method)
            return {"ok": True, **method.run(self._state, call, Args(call.args))}
        except Refused as refused:
            return refused.reply()

    def _authorize(self, call: Call, method: Method) -> None:
        kind = call.token.partition("-")[0]
        if not call.token:
            raise Refused("not_authed")
        if self._state.revoked is not None and kind == "xoxb":
            raise Refused(self._state.revoked)
        if TOKENS.get(kind) != call.token:
            raise Refused("invalid_auth")
        if kind != method.token and call.method != "auth.test":
            raise Refused("not_allowed_token_type")
        if method.scope is not None and method.scope not in self._state.scopes:
            provided = ",".join(sorted(self._state.scopes))
            raise Refused("missing_scope", needed=method.scope, provided=provided)

    def _reply(
        self, request: web.Request, call: Call, status: int, headers: dict[str, str] | None = None
    ) -> web.Response:
        method = METHODS.get(call.method)
        sent = {"x-oauth-scopes": ",".join(sorted(self._state.scopes)), **(headers or {})}
        if method is not None and method.scope is not None:
            sent["x-accepted-oauth-scopes"] = method.scope
        call.status = status
        call.lost = call.lost or request.transport is None or request.transport.is_closing()
        return web.json_response(call.result, status=status, headers=sent)


def _token(request: web.Request, args: Json) -> str:
    """The header's token, else the field's; the field never stays among the arguments."""
    field = str(args.pop("token", "") or "")
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    return token if scheme == "Bearer" and token else field


def _cut_off(request: web.Request, call: Call) -> web.Response:
    call.lost = True
    if request.transport is not None:
        request.transport.close()
    return web.Response()
