"""The probe against real servers, plain and over TLS, with names that lead where they should not."""

import asyncio
import ipaddress
import ssl
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from bot.ports import ToolCall
from bot.tools.http_probe import HttpProvider
from bot.tools.registry import ToolBox
from core.history import Json
from core.redaction import Redactor
from core.tools import CallResult, Outcome, ToolClass

Answer = Callable[[str], bytes]
OK = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 5\r\n"
    b"Set-Cookie: a=b\r\nVia: cache\r\n\r\nhello"
)


class Site:
    """A server that answers with bytes, as told, and remembers requests."""

    def __init__(self, answer: Answer = lambda _: OK) -> None:
        self.answer = answer
        self.requests: list[str] = []
        self.port = 0
        self._server: asyncio.Server | None = None

    async def start(self, context: ssl.SSLContext | None = None) -> "Site":
        """Listen on loopback."""
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=context)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def close(self) -> None:
        """Stop listening."""
        assert self._server is not None
        self._server.close()
        await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            self.requests.append(head)
            writer.write(self.answer(head.split(" ")[1]))
            await writer.drain()
        except (asyncio.IncompleteReadError, OSError):
            pass
        finally:
            writer.close()


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    found = await Site().start()
    yield found
    await found.close()


class Tools:
    """A tool box that holds only the probe; names resolve as told."""

    def __init__(
        self, *hosts: str, networks: tuple[str, ...] = (), trust: ssl.SSLContext | None = None
    ) -> None:
        self.names: dict[str, list[list[str]]] = {}
        self.resolved: list[str] = []
        self.box = ToolBox([HttpProvider(hosts, networks, resolve=self._resolve, trust=trust)], Redactor([]))
        self.hurry = asyncio.Event()

    async def _resolve(self, host: str, port: int) -> list[str]:
        self.resolved.append(host)
        answers = self.names.get(host)
        if not answers:
            raise OSError(-2, "Name or service not known")
        return answers.pop(0) if len(answers) > 1 else answers[0]

    async def __call__(self, url: str, **arguments: Json) -> CallResult:
        return await self.box.run(ToolCall("call_1", "http_probe", {"url": url, **arguments}), self.hurry)


async def test_the_probe_only_reads_and_may_be_interrupted() -> None:
    (spec,) = Tools("a.example.com").box.specs()
    assert spec.tool_class is ToolClass.READ_ONLY
    assert spec.interruptible
    assert "Only these: a.example.com" in spec.description


async def test_an_answer_is_told_with_times_headers_and_text(site: Site) -> None:
    result = await Tools(f"127.0.0.1:{site.port}")(f"http://127.0.0.1:{site.port}/health")
    assert result.outcome is Outcome.OK
    lines = result.text.splitlines()
    assert lines[0] == f"GET http://127.0.0.1:{site.port}/health: 200 OK"
    assert lines[1].startswith("from 127.0.0.1: connect ")
    assert ", first byte " in lines[1]
    assert ", total " in lines[1]
    assert "via: cache" in lines
    assert "set-cookie" not in result.text
    assert result.text.endswith("body, 5 bytes:\nhello")
    assert result.query == f"GET http://127.0.0.1:{site.port}/health"
    assert result.time_range.endswith("Z")
    assert "User-Agent: watchkeeper-probe" in site.requests[0]


async def test_a_head_asks_for_no_body(site: Site) -> None:
    await Tools(f"127.0.0.1:{site.port}")(f"http://127.0.0.1:{site.port}/", method="HEAD")
    assert site.requests[0].startswith("HEAD / HTTP/1.1")


async def test_a_host_that_is_not_listed_is_refused_and_sees_nothing(site: Site) -> None:
    tools = Tools("status.example.com")
    result = await tools(f"http://127.0.0.1:{site.port}/")
    assert result.outcome is Outcome.ERROR
    assert "is not among the hosts that may be probed: status.example.com" in result.text
    assert site.requests == tools.resolved == []


async def test_a_name_that_leads_inside_is_refused_unless_its_network_is_configured(site: Site) -> None:
    host = f"app.example.com:{site.port}"
    tools = Tools(host)
    tools.names["app.example.com"] = [["127.0.0.1"]]
    result = await tools(f"http://{host}/")
    assert result.outcome is Outcome.ERROR
    assert "leads to 127.0.0.1, which is loopback" in result.text
    assert "a person may add its network to networks in [tools.http]" in result.text
    assert site.requests == []
    tools = Tools(host, networks=("127.0.0.0/8",))
    tools.names["app.example.com"] = [["127.0.0.1"]]
    assert (await tools(f"http://{host}/")).outcome is Outcome.OK


async def test_the_address_that_was_checked_is_the_one_that_is_connected_to(site: Site) -> None:
    host = f"rebind.example.com:{site.port}"
    tools = Tools(host, networks=("127.0.0.1/32",))
    tools.names["rebind.example.com"] = [["127.0.0.1"], ["127.0.0.2"]]
    assert "from 127.0.0.1: dns " in (await tools(f"http://{host}/")).text
    assert tools.resolved == ["rebind.example.com"]  # once: what it says afterwards changes nothing
    assert "leads to 127.0.0.2" in (await tools(f"http://{host}/")).text
    assert len(site.requests) == 1


async def test_a_redirect_on_a_name_that_was_rebound_is_not_followed(site: Site) -> None:
    host = f"rebind.example.com:{site.port}"
    site.answer = lambda _: redirect(f"http://{host}/next")
    tools = Tools(host, networks=("127.0.0.1/32",))
    tools.names["rebind.example.com"] = [["127.0.0.1"], ["169.254.169.254"]]
    result = await tools(f"http://{host}/")
    assert "the redirect was not followed: rebind.example.com leads to 169.254.169.254" in result.text
    assert len(site.requests) == 1


@pytest.mark.parametrize(
    "location",
    [
        "http://127.0.0.1:{other}/", "//127.0.0.1:{other}/", "http://localhost:{other}/", "http://[::1]:{other}/",
        "http://169.254.169.254/latest/", "http://0x7f000001:{other}/", "file:///etc/passwd",
        "http://127.0.0.1:{port}@127.0.0.1:{other}/", "http://[", "http://127.0.0.1:{port}%2f@evil/", "gopher://x/",
    ],
)  # fmt: skip
async def test_a_redirect_to_where_nobody_may_probe_is_told_and_not_followed(
    site: Site, location: str
) -> None:
    other = await Site().start()
    site.answer = lambda _: redirect(location.format(other=other.port, port=site.port))
    result = await Tools(f"127.0.0.1:{site.port}")(f"http://127.0.0.1:{site.port}/")
    await other.close()
    assert result.outcome is Outcome.OK
    assert ": 302 Found" in result.text
    assert "the redirect was not followed: " in result.text
    assert other.requests == []


async def test_three_redirects_are_followed_and_no_more(site: Site) -> None:
    site.answer = lambda path: redirect(f"/{len(path)}{path}")
    result = await Tools(f"127.0.0.1:{site.port}")(f"http://127.0.0.1:{site.port}/")
    assert len(site.requests) == 4
    assert "3 redirects were followed; this one was not" in result.text
    site.answer = lambda path: OK if path == "/there" else redirect("there#part")
    assert (await Tools(f"127.0.0.1:{site.port}")(f"http://127.0.0.1:{site.port}/")).text.endswith("hello")


async def test_no_proxy_is_asked(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    assert (await Tools(f"127.0.0.1:{site.port}")(f"http://127.0.0.1:{site.port}/")).outcome is Outcome.OK


async def test_what_cannot_be_reached_is_a_finding_that_names_the_step() -> None:
    tools = Tools("127.0.0.1:1", "gone.example.com")
    refused = await tools("http://127.0.0.1:1/")
    assert refused.outcome is Outcome.OK
    assert "connect: port 1 cannot be reached (127.0.0.1: " in refused.text
    assert (
        "DNS: gone.example.com does not resolve (Name or service not known)"
        in (await tools("https://gone.example.com/")).text
    )


async def test_a_server_that_speaks_no_tls_is_told() -> None:
    async def greet(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"SSH-2.0-OpenSSH_9.2\r\n")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(greet, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    result = await Tools(f"127.0.0.1:{port}")(f"https://127.0.0.1:{port}/")
    server.close()
    await server.wait_closed()
    assert result.outcome is Outcome.OK
    assert "TLS: the handshake failed (" in result.text


@pytest.mark.parametrize(
    "said, words",
    [
        (b"", "HTTP: "),
        (b"SSH-2.0-OpenSSH_9.2\r\n", "HTTP: the server does not speak it"),
        (b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 50_000, "HTTP: the server does not speak it"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nshort", "HTTP: the server does not speak it"),
    ],
)
async def test_a_server_that_speaks_no_http_is_told(site: Site, said: bytes, words: str) -> None:
    site.answer = lambda _: said
    result = await Tools(f"127.0.0.1:{site.port}")(f"http://127.0.0.1:{site.port}/")
    assert words in result.text


async def test_a_large_body_is_cut_and_a_binary_one_is_only_counted(site: Site) -> None:
    site.answer = lambda _: b"HTTP/1.1 200 OK\r\n\r\n" + b"a" * 5_000_000
    tools = Tools(f"127.0.0.1:{site.port}")
    result = await tools(f"http://127.0.0.1:{site.port}/")
    assert "body, at least 65536 bytes:" in result.text
    assert len(result.text) < 4_000
    site.answer = lambda _: b"HTTP/1.1 200 OK\r\nContent-Type: image/png\r\nContent-Length: 3\r\n\r\n\x89PN"
    assert (await tools(f"http://127.0.0.1:{site.port}/")).text.endswith("body: 3 bytes, not text")


async def test_a_probe_in_a_hurry_really_hangs_up() -> None:
    gone = asyncio.Event()

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        tools.hurry.set()
        try:
            while await reader.read(1_000):
                pass
        except OSError:
            pass
        writer.close()
        gone.set()

    server = await asyncio.start_server(silent, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    tools = Tools(f"127.0.0.1:{port}")
    result = await tools(f"http://127.0.0.1:{port}/")
    assert result.outcome is Outcome.STOPPED
    async with asyncio.timeout(5):
        await gone.wait()
    server.close()
    await server.wait_closed()


# --- certificates ---


def certified(
    folder: Path, days: float, names: list[x509.GeneralName]
) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """A server's context, with a certificate that ends in so many days, and a client's that trusts it."""
    issuer, issuer_key = certificate("Test issuer", None, None, 365, [])
    leaf, leaf_key = certificate("shop", issuer, issuer_key, days, names)
    (folder / "leaf.pem").write_bytes(
        leaf.public_bytes(serialization.Encoding.PEM)
        + leaf_key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(folder / "leaf.pem")
    trust = ssl.create_default_context(cadata=issuer.public_bytes(serialization.Encoding.PEM).decode())
    return server, trust


def certificate(
    name: str,
    issuer: x509.Certificate | None,
    issuer_key: ec.EllipticCurvePrivateKey | None,
    days: float,
    names: list[x509.GeneralName],
) -> tuple[x509.Certificate, ec.EllipticCurvePrivateKey]:
    """A certificate and its key, signed by the issuer or by itself."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    signer = issuer_key or key
    now = datetime.now(UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer.subject if issuer else subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=30))
        .not_valid_after(now + timedelta(days=days))
        .add_extension(x509.BasicConstraints(ca=issuer is None, path_length=None), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()), critical=False
        )
    )
    if names:
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    return builder.sign(signer, hashes.SHA256()), key


LOOPBACK = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))


async def test_a_good_certificate_is_told_with_expiry_issuer_and_names(tmp_path: Path) -> None:
    server, trust = certified(tmp_path, 20, [LOOPBACK, x509.DNSName("shop.example.com")])
    site = await Site().start(server)
    result = await Tools(f"127.0.0.1:{site.port}", trust=trust)(f"https://127.0.0.1:{site.port}/")
    await site.close()
    assert ", tls " in result.text
    assert "certificate (TLSv1.3): expires in 20.0 days, at " in result.text
    assert "trusted; for 127.0.0.1, shop.example.com; subject shop; issuer Test issuer" in result.text
    assert "NOT TRUSTED" not in result.text


async def test_an_expired_certificate_is_told_and_the_answer_behind_it_too(tmp_path: Path) -> None:
    server, trust = certified(tmp_path, -3, [LOOPBACK])
    site = await Site().start(server)
    result = await Tools(f"127.0.0.1:{site.port}", trust=trust)(f"https://127.0.0.1:{site.port}/")
    await site.close()
    assert result.outcome is Outcome.OK
    assert ": EXPIRED 3.0 days ago, at " in result.text
    assert "NOT TRUSTED: certificate has expired" in result.text
    assert result.text.endswith("hello")


async def test_a_certificate_for_another_name_or_of_an_unknown_issuer_is_told(tmp_path: Path) -> None:
    server, trust = certified(tmp_path, 20, [x509.DNSName("other.example.com")])
    site = await Site().start(server)
    url = f"https://127.0.0.1:{site.port}/"
    wrong_name = await Tools(f"127.0.0.1:{site.port}", trust=trust)(url)
    unknown = await Tools(f"127.0.0.1:{site.port}")(url)
    await site.close()
    assert "NOT TRUSTED: IP address mismatch" in wrong_name.text
    assert "for other.example.com" in wrong_name.text
    assert "NOT TRUSTED: unable to get local issuer certificate" in unknown.text


def redirect(location: str) -> bytes:
    return f"HTTP/1.1 302 Found\r\nLocation: {location}\r\nContent-Length: 0\r\n\r\n".encode()
