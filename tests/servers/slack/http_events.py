"""HTTP mode: signed requests to the app's URL, three seconds to answer."""

from __future__ import annotations

import hashlib
import hmac
import json
import time
import urllib.parse

import aiohttp

from tests.servers.slack.delivery import Attempt, Delivery, Form, now

JSON = "application/json"
FORM = "application/x-www-form-urlencoded"


class HttpEvents:
    def __init__(self, signing_secret: str, answer_within: float) -> None:
        self.url: str | None = None
        self.signing_secret = signing_secret
        self.answer_within = answer_within
        self._session: aiohttp.ClientSession | None = None

    def signed(self, body: bytes, timestamp: int | None = None) -> dict[str, str]:
        """The headers that prove this body is Slack's."""
        stamp = str(int(time.time()) if timestamp is None else timestamp)
        base = b"v0:" + stamp.encode() + b":" + body
        digest = hmac.new(self.signing_secret.encode(), base, hashlib.sha256).hexdigest()
        return {"X-Slack-Request-Timestamp": stamp, "X-Slack-Signature": f"v0={digest}"}

    async def post(
        self, body: bytes, content_type: str, headers: dict[str, str]
    ) -> tuple[int, dict[str, str], str]:
        """One request to the app as it is; status, headers (lower case) and body of the answer."""
        assert self.url is not None, "set slack.http_events_url first"
        if self._session is None:
            self._session = aiohttp.ClientSession()
        sent = {
            "Content-Type": content_type,
            "User-Agent": "Slackbot 1.0 (+https://api.slack.com/robots)",
            **headers,
        }
        limit = aiohttp.ClientTimeout(total=self.answer_within)
        async with self._session.post(
            self.url, data=body, headers=sent, timeout=limit, allow_redirects=False
        ) as answer:
            return answer.status, {k.lower(): v for k, v in answer.headers.items()}, await answer.text()

    async def send(self, delivery: Delivery, number: int, reason: str | None) -> Attempt:
        body, content_type = _body(delivery)
        headers = self.signed(body)
        if number:
            headers |= {"X-Slack-Retry-Num": str(number), "X-Slack-Retry-Reason": reason or "unknown_error"}
        sent_at = now()
        try:
            status, answered, text = await self.post(body, content_type, headers)
        except TimeoutError:
            return Attempt(sent_at, "http_timeout")
        except aiohttp.ClientError:
            return Attempt(sent_at, "connection_failed")
        if 200 <= status < 300:
            return Attempt(sent_at, None, answer=text)
        final = answered.get("x-slack-no-retry") == "1"
        return Attempt(sent_at, "http_error", final=final, answer=text)

    async def verify_url(self, token: str) -> bool:
        """The challenge Slack sends when a URL is entered."""
        body = json.dumps({"type": "url_verification", "token": token, "challenge": "c-3eZbrw1a"}).encode()
        status, _, text = await self.post(body, JSON, self.signed(body))
        return status == 200 and "c-3eZbrw1a" in text

    async def stop(self) -> None:
        if self._session is not None:
            await self._session.close()


def _body(delivery: Delivery) -> tuple[bytes, str]:
    encoded = json.dumps(delivery.body)
    if delivery.form is Form.INTERACTION:
        return urllib.parse.urlencode({"payload": encoded}).encode(), FORM
    return encoded.encode(), JSON
