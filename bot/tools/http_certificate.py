"""What a server's certificate says: until when, from whom, for which names."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from cryptography import x509
from cryptography.x509.oid import NameOID

from bot.tools.prometheus_time import iso

MOST_NAMES = 10
DAY_S = 86_400


@dataclass(frozen=True, slots=True)
class Certificate:
    """The leaf certificate; `fault` is why it is not trusted, "" when it is."""

    subject: str
    issuer: str
    names: tuple[str, ...]
    begins: float
    ends: float
    fault: str

    def words(self, now: float) -> str:
        """One line: validity first."""
        left = (self.ends - now) / DAY_S
        if left < 0:
            until = f"EXPIRED {-left:.1f} days ago, at {iso(self.ends)}"
        elif now < self.begins:
            until = f"NOT VALID BEFORE {iso(self.begins)}"
        else:
            until = f"expires in {left:.1f} days, at {iso(self.ends)}"
        names = ", ".join(self.names[:MOST_NAMES]) or "no names"
        trust = f"NOT TRUSTED: {self.fault}" if self.fault else "trusted"
        return f"{until}; {trust}; for {names}; subject {self.subject}; issuer {self.issuer}"


def read(der: bytes, fault: str) -> Certificate | None:
    """The certificate from its DER form; None for one that cannot be read."""
    try:
        found = x509.load_der_x509_certificate(der)
        return Certificate(
            subject=_name(found.subject),
            issuer=_name(found.issuer),
            names=_names(found),
            begins=found.not_valid_before_utc.timestamp(),
            ends=found.not_valid_after_utc.timestamp(),
            fault=fault,
        )
    except (ValueError, x509.InvalidVersion):
        return None


def now() -> float:
    """The time with which certificates are compared."""
    return datetime.now(UTC).timestamp()


def _name(name: x509.Name) -> str:
    common = name.get_attributes_for_oid(NameOID.COMMON_NAME)
    return str(common[0].value) if common else name.rfc4514_string()


def _names(certificate: x509.Certificate) -> tuple[str, ...]:
    try:
        found = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (x509.ExtensionNotFound, ValueError):
        return ()
    return tuple(str(each.value) for each in found if isinstance(each, x509.DNSName | x509.IPAddress))
