"""Hostile URLs and addresses: what may be probed is decided before anything is sent."""

from ipaddress import ip_address

import pytest

from bot.tools.http_address import Allowed, NotAllowed, never, parse, private

ALLOWED = Allowed(["status.example.com", "api.example.com:8443", "10.0.0.5:8080", "[fd00::5]:8080"])

HOSTILE = [
    # other forms of loopback, private and metadata addresses
    "http://127.0.0.1/", "http://127.0.0.1:80/", "http://127.1/", "http://127.0.1/", "http://2130706433/",
    "http://0x7f000001/", "http://0x7f.0.0.1/", "http://0177.0.0.1/", "http://017700000001/", "http://0/",
    "http://0.0.0.0/", "http://00000177.0.0.1/", "http://127.0.0.1./", "http://127.0.0.0x1/", "http://256.1.1.1/",
    "http://169.254.169.254/latest/meta-data/", "http://2852039166/", "http://0xA9FEA9FE/", "http://0251.0376.0251.0376/",
    "http://10.0.0.5/", "http://10.0.0.5:8081/", "http://10.0.0.05:8080/", "http://10.5:8080/", "http://0xa.0.0.5:8080/",
    "http://167772165:8080/", "http://192.168.1.1/", "http://172.16.0.1/", "http://100.64.0.1/", "http://1.2.3.4.5/",
    # IPv6, and IPv4 in it
    "http://[::1]/", "http://[::]/", "http://[::ffff:127.0.0.1]/", "http://[::ffff:7f00:1]/", "http://[::127.0.0.1]/",
    "http://[::ffff:10.0.0.5]:8080/", "http://[0:0:0:0:0:ffff:a00:5]:8080/", "http://[64:ff9b::7f00:1]/",
    "http://[2002:7f00:1::]/", "http://[fe80::1]/", "http://[fe80::1%25eth0]/", "http://[fd00:ec2::254]/",
    "http://[fd00::5]:8081/", "http://[::1]evil/", "http://[status.example.com]/", "http://[::1/", "http://::1/",
    # a listed host that is not the host
    "http://status.example.com@127.0.0.1/", "http://user@status.example.com/", "http://user:pw@status.example.com/",
    "http://127.0.0.1#@status.example.com/", "http://127.0.0.1\\@status.example.com/", "http://status.example.com\\@evil/",
    "http://status.example.com.evil.com/", "http://evilstatus.example.com/", "http://status.example.com:22/",
    "http://status.example.com:8443/", "http://api.example.com/", "http://status.example.com%2eevil.com/",
    "http://status.example.com%00.evil.com/", "http://status.example.com../", "http://.status.example.com/",
    "http://status..example.com/", "http://status.example.com:0/", "http://status.example.com:99999/",
    "http://status.example.com:/", "http://status.example.com:80:80/", "http://status.example.com:+80/",
    "http://evil.com?status.example.com", "http://evil.com/status.example.com", "http://metadata.google.internal/",
    # letters that only look alike, and what is no URL
    "http://ｓtatus.example.com/", "http://status.examplе.com/", "http://status。example.com/", "http://①②⑦.⓪.⓪.①/",
    "http://status.example.com\u200b/", "http://status.example.com /", "http://status.exam\tple.com/",
    "http://status.example.com/\r\nHost: evil", "http://status.example.com/\x00", "http:status.example.com",
    "http:///status.example.com", "//status.example.com/", "status.example.com", "", "http://", "https://?",
    "ftp://status.example.com/", "file:///etc/passwd", "gopher://status.example.com/", "javascript:alert(1)",
    "dict://status.example.com:11211/", "unix:///var/run/docker.sock", "http+unix://status.example.com/",
    "http://status.example.com/" + "a" * 3_000,
]  # fmt: skip


def test_the_table_is_as_long_as_it_was_promised() -> None:
    assert len(set(HOSTILE)) == len(HOSTILE) >= 60


@pytest.mark.parametrize("url", HOSTILE)
def test_a_hostile_url_is_refused_before_anything_is_resolved(url: str) -> None:
    with pytest.raises(NotAllowed):
        ALLOWED.target(url)


@pytest.mark.parametrize(
    "url, host, port, one_spelling",
    [
        ("http://status.example.com", "status.example.com", 80, "http://status.example.com/"),
        ("HTTPS://Status.Example.COM/a?b=c#d", "status.example.com", 443, "https://status.example.com/a?b=c"),
        ("https://status.example.com./", "status.example.com", 443, "https://status.example.com/"),
        ("http://status.example.com:443/", "status.example.com", 443, "http://status.example.com:443/"),
        ("https://api.example.com:8443/x", "api.example.com", 8443, "https://api.example.com:8443/x"),
        ("http://10.0.0.5:8080/", "10.0.0.5", 8080, "http://10.0.0.5:8080/"),
        ("http://[FD00:0::5]:8080/", "fd00::5", 8080, "http://[fd00::5]:8080/"),
    ],
)
def test_a_listed_host_has_one_spelling(url: str, host: str, port: int, one_spelling: str) -> None:
    target = ALLOWED.target(url)
    assert (target.host, target.port, target.url) == (host, port, one_spelling)


INSIDE = [
    "127.0.0.1", "127.9.9.9", "10.0.0.1", "10.0.0.5", "172.16.0.1", "172.31.255.255", "192.168.0.1",
    "100.64.0.1",
    "169.254.169.254", "168.63.129.16", "100.100.100.200", "192.0.0.192", "0.0.0.0", "224.0.0.1", "240.0.0.1",
    "255.255.255.255", "192.0.2.1", "198.18.0.1", "203.0.113.1", "192.88.99.1", "::", "::1", "::ffff:8.8.8.8",
    "::ffff:127.0.0.1", "::127.0.0.1", "64:ff9b::808:808", "64:ff9b:1::1", "2002:808:808::1", "2001::1",
    "2001:db8::1", "fc00::1", "fd00:ec2::254", "fe80::1", "fe80::1%eth0", "fec0::1", "ff02::1", "100::1",
    "5f00::1",
]  # fmt: skip


@pytest.mark.parametrize("address", INSIDE)
def test_a_listed_name_may_not_lead_inside(address: str) -> None:
    target = ALLOWED.target("http://status.example.com/")
    with pytest.raises(NotAllowed, match="which is"):
        ALLOWED.addresses(target, [address])
    with pytest.raises(NotAllowed, match="which is"):
        ALLOWED.addresses(target, ["93.184.215.14", address])  # one good address does not excuse it


@pytest.mark.parametrize("address", ["93.184.215.14", "8.8.8.8", "2606:4700::1111", "2a00:1450::1"])
def test_a_listed_name_may_lead_to_a_public_address(address: str) -> None:
    found = ALLOWED.addresses(ALLOWED.target("http://status.example.com/"), [address])
    assert found == [ip_address(address)]


def test_a_configured_network_lets_a_name_lead_there_but_never_to_metadata() -> None:
    allowed = Allowed(["app.internal:8080"], ["10.0.0.0/8", "169.254.0.0/16", "100.64.0.0/10", "fc00::/7"])
    target = allowed.target("http://app.internal:8080/")
    assert allowed.addresses(target, ["10.1.2.3", "100.64.0.9", "fd12::1"])
    for address in ("192.168.0.1", "169.254.169.254", "100.100.100.200", "fd00:ec2::254", "127.0.0.1"):
        with pytest.raises(NotAllowed):
            allowed.addresses(target, [address])


def test_an_address_without_its_port_is_listed_only_for_the_usual_ports() -> None:
    allowed = Allowed(["8.8.8.8", "10.0.0.5"])
    assert allowed.target("http://8.8.8.8/").port == 80
    with pytest.raises(NotAllowed, match="not among the hosts"):
        allowed.target("http://8.8.8.8:8080/")
    with pytest.raises(NotAllowed, match="is private"):
        allowed.target("http://10.0.0.5/")


def test_a_refusal_names_what_may_be_probed() -> None:
    with pytest.raises(NotAllowed, match=r"hosts that may be probed: status\.example\.com, api"):
        ALLOWED.target("http://evil.com/")


def test_public_addresses_are_nothing_special() -> None:
    assert never(ip_address("8.8.8.8")) is private(ip_address("2606:4700::1111")) is None
    assert parse("http://8.8.8.8/").address == ip_address("8.8.8.8")
