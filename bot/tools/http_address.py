"""Which addresses may be probed: pure decisions on a URL, an allow-list and what a name resolved to.

Rule 1: only listed hosts. A host is compared as it is written in the URL, so there is one way to write it: plain
ASCII, a dotted IPv4 address, or an IPv6 address in brackets. What browsers would guess at is refused.
Rule 2: a name may not lead to an address that is not public, unless that address lies in a configured network;
metadata services and link-local addresses are reached in no such way.
Rule 3: a private address is probed when that very `address:port` is listed.

Ranges are those of the special-purpose registries (RFC 6890, https://www.iana.org/assignments/iana-ipv4-special-registry,
…/iana-ipv6-special-registry) and of translation schemes that hide an IPv4 address in an IPv6 one.
"""  # noqa: E501 — the addresses

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import TypeAlias
from urllib.parse import urlsplit

Address: TypeAlias = IPv4Address | IPv6Address
Network: TypeAlias = IPv4Network | IPv6Network

LONGEST_URL = 2_000
PORTS = {"http": 80, "https": 443}

_URL = re.compile(r"https?://[!-~]+", re.IGNORECASE)  # printable ASCII: no blanks, controls or other letters
_NETLOC = re.compile(r"(?:\[[0-9a-f:.]{2,45}\]|[^][:]{1,254})(?::[0-9]{1,5})?", re.IGNORECASE)
_LABEL = r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?"
_NAME = re.compile(rf"(?=.{{1,253}}$){_LABEL}(?:\.{_LABEL})*")
_NUMERIC = re.compile(r"(?:.*\.)?(?:[0-9]+|0x[0-9a-f]*)")  # what inet_aton would take for an address

# Never through a configured network: these answer with credentials to whoever asks.
_NEVER: tuple[tuple[Network, str], ...] = tuple(
    (ip_network(network), what)
    for network, what in (
        ("169.254.0.0/16", "link-local or metadata"),
        ("168.63.129.16/32", "metadata"),
        ("100.100.100.200/32", "metadata"),
        ("192.0.0.192/32", "metadata"),
        ("fd00:ec2::/32", "metadata"),
        ("fe80::/10", "link-local"),
        ("0.0.0.0/8", "unspecified"),
        ("::/128", "unspecified"),
        ("224.0.0.0/4", "multicast"),
        ("ff00::/8", "multicast"),
        ("255.255.255.255/32", "broadcast"),
        ("::ffff:0:0/96", "IPv4-mapped"),
        ("::ffff:0:0:0/96", "IPv4-translated"),
        ("64:ff9b::/96", "NAT64"),
        ("64:ff9b:1::/48", "NAT64"),
        ("2002::/16", "6to4"),
        ("192.88.99.0/24", "6to4"),
        ("2001::/32", "Teredo"),
    )
)
_PRIVATE: tuple[tuple[Network, str], ...] = tuple(
    (ip_network(network), what)
    for network, what in (
        ("127.0.0.0/8", "loopback"),
        ("::1/128", "loopback"),
        ("10.0.0.0/8", "private"),
        ("172.16.0.0/12", "private"),
        ("192.168.0.0/16", "private"),
        ("fc00::/7", "private"),
        ("100.64.0.0/10", "carrier-grade NAT"),
    )
)
_GLOBAL_UNICAST = ip_network("2000::/3")


class NotAllowed(Exception):
    """The URL may not be probed. The message says why, and what may be."""


@dataclass(frozen=True, slots=True)
class Target:
    """Where a URL leads: `host` as it is listed, `address` when it is an address itself."""

    scheme: str
    host: str
    port: int
    path: str
    address: Address | None

    @property
    def authority(self) -> str:
        """For the Host field (RFC 9110, 7.2): without the scheme's own port."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == PORTS[self.scheme] else f"{host}:{self.port}"

    @property
    def url(self) -> str:
        """The URL in its one spelling."""
        return f"{self.scheme}://{self.authority}{self.path}"


class Allowed:
    """The allow-list: `host` stands for its ports 80 and 443, `host:port` for that port."""

    def __init__(self, hosts: Iterable[str], networks: Iterable[str] = ()) -> None:
        self._shown = tuple(hosts)
        self._entries = {each for entry in self._shown for each in _ports(entry.lower())}
        self._literal = {(host, port) for host, port, literal in self._entries if literal}
        self._networks: tuple[Network, ...] = tuple(ip_network(each) for each in networks)

    def target(self, url: str) -> Target:
        """The target of a URL whose host is listed; NotAllowed otherwise."""
        found = parse(url)
        if not any((found.host, found.port) == entry[:2] for entry in self._entries):
            listed = ", ".join(self._shown)
            raise NotAllowed(f"{found.authority} is not among the hosts that may be probed: {listed}")
        if found.address is not None:
            self._check(found, found.address)
        return found

    def addresses(self, target: Target, resolved: Sequence[str]) -> list[Address]:
        """What a name resolved to, all of it checked: one address that is not allowed refuses the name."""
        found: list[Address] = []
        for text in resolved:
            address = ip_address(text.partition("%")[0])
            self._check(target, address)
            found.append(address)
        return found

    def _check(self, target: Target, address: Address) -> None:
        if target.address is not None and (target.host, target.port) in self._literal:
            return
        if (what := never(address)) is not None:
            raise NotAllowed(f"{target.host} leads to {address}, which is {what} and is not probed")
        if any(address in network for network in self._networks):
            return
        if (what := private(address)) is not None:
            raise NotAllowed(
                f"{target.host} leads to {address}, which is {what} and is not probed; a person may add its "
                "network to networks in [tools.http]"
            )


def parse(url: str) -> Target:
    """The parts of a URL; NotAllowed for all that two programs might read differently."""
    if len(url) > LONGEST_URL or not _URL.fullmatch(url) or "\\" in url:
        raise NotAllowed("that is no plain http:// or https:// URL in ASCII; write other letters as xn--…")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise NotAllowed("that URL has no valid host and port") from None
    if "@" in parts.netloc or "%" in parts.netloc:
        raise NotAllowed("a URL with a user, a password or an escape in its host is not probed")
    if port == 0 or not _NETLOC.fullmatch(parts.netloc):
        raise NotAllowed("that URL has no valid host and port")
    scheme = parts.scheme.lower()
    host, address = _host(parts.hostname or "", bracketed=parts.netloc.startswith("["))
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return Target(scheme, host, port or PORTS[scheme], path, address)


def never(address: Address) -> str | None:
    """What an address is that no configured network makes reachable; None for all others."""
    return next((what for network, what in _NEVER if address in network), None)


def private(address: Address) -> str | None:
    """What an address is that is not public; None for a public one."""
    known = next((what for network, what in _PRIVATE if address in network), None)
    if known is not None:
        return known
    beyond = isinstance(address, IPv6Address) and address not in _GLOBAL_UNICAST
    return "reserved" if beyond or not address.is_global or address.is_reserved else None


def _host(host: str, *, bracketed: bool) -> tuple[str, Address | None]:
    if bracketed:
        try:
            address = IPv6Address(host)
        except ValueError:
            raise NotAllowed("what stands in brackets is no IPv6 address") from None
        if address.scope_id:
            raise NotAllowed("an IPv6 address with a zone is not probed")
        return str(address), address
    name = host.removesuffix(".")
    if _NUMERIC.fullmatch(name):
        try:
            return name, IPv4Address(name)
        except ValueError:
            raise NotAllowed(f"{name} is an address in no ordinary form; write a.b.c.d") from None
    if not _NAME.fullmatch(name):
        raise NotAllowed("that URL has no valid host")
    return name, None


def _ports(entry: str) -> list[tuple[str, int, bool]]:
    """Host, port, and whether the port was written. IPv6 addresses stand in brackets."""
    host, colon, port = entry.rpartition(":")
    if not colon or entry.endswith("]"):
        host, port = entry, ""
    name, _ = _host(host.strip("[]"), bracketed=host.startswith("["))
    return [(name, int(port), True)] if port else [(name, each, False) for each in PORTS.values()]
