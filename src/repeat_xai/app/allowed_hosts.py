"""The names and addresses under which the app may be reached."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import ip_address
from typing import TYPE_CHECKING, final
from urllib.parse import urlsplit

from repeat_xai.app.request_body import RefusedError

if TYPE_CHECKING:
    from starlette.requests import Request

LOOPBACK_HOSTS = ("127.0.0.1", "localhost", "::1")
DEFAULT_PORTS = (80, 443)
"""Ports that browsers leave out of an address."""


@final
@dataclass(frozen=True, kw_only=True)
class AllowedHosts:
    """The names under which the app may be reached; a request for any other name is refused.

    A web page elsewhere can let its own name resolve to this machine, or send requests here from a user's browser. The
    headers Host and Origin then name that page. The names of the loopback interface are allowed only for requests that
    arrive over it.
    """

    port: int
    shared: bool
    """Whether other machines may use the app. The machine's own addresses and names are then allowed as well."""
    further: Sequence[str] = ()
    """Further names, as NAME or NAME:PORT, such as that of a server in front of this one."""

    def check(self, request: Request) -> None:
        """Refuse a request that was meant for another host, or comes from a page of another site."""
        reached_address = _canonical(str((request.scope.get("server") or ("", 0))[0]))
        host = request.headers.get("host", "")
        if not self._allows(host, reached_address):
            raise RefusedError(
                403, f"this app is not known as {host[:100]!r}; name it among the allowed hosts when starting the app"
            )
        origin = request.headers.get("origin")
        if origin is not None:
            scheme, _, origin_host = origin.partition("://")
            if scheme not in ("http", "https") or not self._allows(origin_host, reached_address):
                raise RefusedError(403, "a page of another site may not use this app")

    def _allows(self, host: str, reached_address: str) -> bool:
        name, port = _split(host)
        own_names = LOOPBACK_HOSTS if _is_loopback(reached_address) else ()
        if name in own_names or (self.shared and name in (reached_address, *_machine_names())):
            return port == self.port or (port is None and self.port in DEFAULT_PORTS)
        further = [_split(entry) for entry in self.further]
        return (name, port) in further or ((name, None) in further and port == self.port)


def _machine_names() -> tuple[str, str]:
    name = socket.gethostname().lower()
    return (name, f"{name}.local")


def _split(host: str) -> tuple[str, int | None]:
    """Return the name and the port of a host; where the text is not a valid host, the name is empty.

    >>> _split("localhost:7860"), _split("[::1]:80"), _split("Example.org"), _split("a:b")
    (('localhost', 7860), ('::1', 80), ('example.org', None), ('', None))
    """
    try:
        parts = urlsplit(f"//{host}")
        is_plain = parts.netloc == host and parts.username is None
        return ((parts.hostname or "") if is_plain else "", parts.port)
    except ValueError:
        return ("", None)


def _is_loopback(address: str) -> bool:
    try:
        return ip_address(address).is_loopback
    except ValueError:
        return False


def _canonical(address: str) -> str:
    """Return an IP address as browsers write it: an IPv4 address that IPv6 has wrapped is unwrapped."""
    try:
        parsed = ip_address(address)
    except ValueError:
        return address
    return str(getattr(parsed, "ipv4_mapped", None) or parsed)
