"""A real Chromium, without a window, steered over its own protocol.

https://chromedevtools.github.io/devtools-protocol/
"""

from __future__ import annotations

import asyncio
import base64
import itertools
import json
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from aiohttp import ClientSession, ClientWebSocketResponse

FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-extensions",
    "--disable-background-networking",
    "--no-first-run",
    "--hide-scrollbars",
    "--force-color-profile=srgb",
    "--remote-debugging-port=0",
)
PATIENCE_S = 25.0


class Page:
    """One tab."""

    def __init__(self, socket: ClientWebSocketResponse) -> None:
        self._socket = socket
        self._numbers = itertools.count(1)
        self._answers: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self.complaints: list[str] = []

    async def listen(self) -> None:
        """Take answers and events for ever."""
        async for message in self._socket:
            said = json.loads(message.data)
            future = self._answers.pop(said.get("id", 0), None)
            if future is not None and not future.done():
                future.set_result(said)
            self._note(said)

    def _note(self, said: dict[str, Any]) -> None:
        params = said.get("params", {})
        if said.get("method") == "Runtime.exceptionThrown":
            self.complaints.append(str(params["exceptionDetails"])[:500])
        entry = params.get("entry", {})
        if said.get("method") == "Log.entryAdded" and entry.get("level") == "error":
            self.complaints.append(f"{entry.get('text')} {entry.get('url', '')}")

    async def send(self, method: str, **params: Any) -> dict[str, Any]:
        """One command and its result."""
        number = next(self._numbers)
        future = self._answers[number] = asyncio.get_running_loop().create_future()
        await self._socket.send_json({"id": number, "method": method, "params": params})
        async with asyncio.timeout(PATIENCE_S):
            answer = await future
        if "error" in answer:
            raise AssertionError(f"{method}: {answer['error']}")
        return dict(answer["result"])

    # --- what a person does -------------------------------------------------------------------------------

    async def go(self, address: str) -> None:
        """Open an address and wait until it is there."""
        await self.send("Page.navigate", url=address)
        await self.until("document.readyState === 'complete' && location.href !== 'about:blank'")

    async def reload(self) -> None:
        """Load the page again."""
        await self.look("window.before = true")
        await self.send("Page.reload")
        await self.until("!window.before && document.readyState === 'complete'")

    async def click(self, selector: str) -> None:
        """Click into the middle of an element, once it is there."""
        found = f"document.querySelector({json.dumps(selector)})"
        await self.until(f"{found} !== null")
        await self.look(f"{found}.scrollIntoView({{block: 'center'}})")
        box = await self.look(
            f"(() => {{ const b = {found}.getBoundingClientRect();"
            " return [b.x + b.width / 2, b.y + b.height / 2]; })()"
        )
        for kind in ("mousePressed", "mouseReleased"):
            await self.send(
                "Input.dispatchMouseEvent", type=kind, x=box[0], y=box[1], button="left", clickCount=1
            )

    async def write(self, words: str, selector: str = "#words") -> None:
        """Type into a field, in place of what is in it."""
        await self.look(f"document.querySelector({json.dumps(selector)}).select()")
        await self.look(f"document.querySelector({json.dumps(selector)}).focus()")
        await self.send("Input.insertText", text=words)

    async def press(self, key: str) -> None:
        """Press one key."""
        codes = {"Enter": (13, "\r"), "Tab": (9, "")}
        code, text = codes[key]
        await self.send(
            "Input.dispatchKeyEvent", type="keyDown", key=key, code=key, windowsVirtualKeyCode=code, text=text
        )
        await self.send("Input.dispatchKeyEvent", type="keyUp", key=key, code=key, windowsVirtualKeyCode=code)

    # --- what a person sees -------------------------------------------------------------------------------

    async def look(self, expression: str) -> Any:
        """The value of an expression in the page."""
        answer = await self.send(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        if "exceptionDetails" in answer:
            raise AssertionError(f"{expression}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    async def until(self, expression: str, timeout: float = PATIENCE_S) -> None:
        """Wait until it is true; a page that is being replaced counts as not yet."""
        try:
            async with asyncio.timeout(timeout):
                while True:
                    try:
                        if await self.look(f"!!({expression})"):
                            return
                    except AssertionError:
                        pass
                    await asyncio.sleep(0.03)
        except TimeoutError:
            raise AssertionError(f"never true: {expression}\n{await self.text()}") from None

    async def until_says(self, words: str, timeout: float = PATIENCE_S) -> None:
        """Wait until these words are on the page."""
        await self.until(f"document.body.innerText.includes({json.dumps(words)})", timeout)

    async def text(self) -> str:
        """All words on the page."""
        return str(await self.look("document.body ? document.body.innerText : ''"))

    async def window(self, width: int, height: int, *, dark: bool = False) -> None:
        """Be a screen of this size and kind."""
        await self.send(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 600,
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        await self.send("Emulation.setEmulatedMedia", features=[scheme])

    async def picture(self, path: Path) -> None:
        """Keep what is to be seen."""
        shot = await self.send("Page.captureScreenshot", format="png")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(base64.b64decode(shot["data"]))


@asynccontextmanager
async def browser(folder: Path) -> AsyncIterator[Page]:
    """A Chromium with one tab, gone afterwards."""
    program = shutil.which("chromium")
    assert program, "these stories need Debian's chromium"
    process = await asyncio.create_subprocess_exec(
        program,
        *FLAGS,
        f"--user-data-dir={folder}",
        "about:blank",
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        port = await _port(folder / "DevToolsActivePort")
        async with (
            ClientSession() as session,
            session.ws_connect(await _tab(session, port), max_msg_size=0) as ws,
        ):
            page = Page(ws)
            listening = asyncio.create_task(page.listen(), name="listen to the browser")
            for domain in ("Page", "Runtime", "Log"):
                await page.send(f"{domain}.enable")
            yield page
            listening.cancel()
            await asyncio.gather(listening, return_exceptions=True)
    finally:
        process.kill()
        await process.wait()


async def _port(file: Path) -> int:
    async with asyncio.timeout(PATIENCE_S):
        while not file.exists() or not file.read_text().strip():
            await asyncio.sleep(0.05)
    return int(file.read_text().splitlines()[0])


async def _tab(session: ClientSession, port: int) -> str:
    async with asyncio.timeout(PATIENCE_S):
        while True:
            async with session.get(f"http://127.0.0.1:{port}/json/list") as answer:
                tabs = [tab for tab in await answer.json() if tab["type"] == "page"]
            if tabs:
                return str(tabs[0]["webSocketDebuggerUrl"])
            await asyncio.sleep(0.05)
