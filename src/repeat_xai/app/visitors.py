"""Who may use the app: by which addresses it is reached, and which browsers it knows."""

from __future__ import annotations

import hashlib
import hmac
import secrets
import socket
from collections.abc import Sequence
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import TYPE_CHECKING, final
from urllib.parse import urlsplit

from repeat_xai.app.request_body import RefusedError

if TYPE_CHECKING:
    from starlette.requests import Request

LOOPBACK = ("127.0.0.1", "localhost", "::1")
USUAL_PORTS = (80, 443)
"""Ports that browsers leave out of an address."""


@final
@dataclass(frozen=True, kw_only=True)
class Hosts:
    """The addresses that the app is reached by; a request that names another is refused.

    A web page elsewhere can let its own name stand for this machine, or send requests here from a visitor's browser.
    The headers Host and Origin then name that page.
    """

    port: int
    shared: bool
    """Whether other machines may use the app: then its own addresses and name count too, beside those of loopback."""
    told: Sequence[str] = ()
    """Further addresses, as NAME or NAME:PORT, such as that of a server in front of this one."""

    def expect(self, request: Request) -> None:
        """Refuse a request that was meant for another host, or comes from a page of another."""
        server = request.scope.get("server") or ("", 0)
        host = request.headers.get("host", "")
        if not self._is_own(host, str(server[0])):
            raise RefusedError(
                403, f"this app is not known as {host[:100]!r}; start it with --allow-host to allow that"
            )
        origin = request.headers.get("origin")
        if origin is not None and not self._is_own(urlsplit(origin).netloc, str(server[0])):
            raise RefusedError(403, "a page of another site may not use this app")

    def _is_own(self, address: str, reached: str) -> bool:
        name, port = _split(address)
        if name in LOOPBACK or (self.shared and name in (_plain(reached), *_names())):
            return port == self.port or (port is None and self.port in USUAL_PORTS)
        told = [_split(one) for one in self.told]
        return (name, port) in told or ((name, None) in told and port == self.port)


@final
@dataclass(frozen=True, kw_only=True)
class Visitors:
    """Browsers that were given the page, each known by a cookie that this process has signed."""

    port: int
    token: str | None = field(repr=False)
    """What a browser must show to be given the page; None: nothing."""
    secret: bytes = field(default_factory=lambda: secrets.token_bytes(32), repr=False)

    @property
    def name(self) -> str:
        """The cookie's name. Browsers share cookies between the ports of a host, so the port is part of it."""
        return f"repeat-xai-{self.port}"

    def address(self, host: str) -> str:
        """Return the address that a browser opens first, by that name of this machine."""
        shown = f"[{host}]" if ":" in host else host
        return f"http://{shown}:{self.port}" + (f"/?token={self.token}" if self.token else "")

    def of(self, request: Request) -> str | None:
        """Return which browser a request comes from, or None if it has no cookie of ours."""
        visitor, _, seal = request.cookies.get(self.name, "").partition(".")
        return visitor if hmac.compare_digest(seal.encode(), self._seal(visitor).encode()) else None

    def has_token(self, request: Request) -> bool:
        """Tell whether a request shows the token, where one is needed."""
        shown = request.query_params.get("token", "")
        return self.token is None or hmac.compare_digest(shown.encode(), self.token.encode())

    def cookie(self) -> str:
        """Return a cookie for a browser that has none: scripts cannot read it, other sites cannot send it."""
        visitor = secrets.token_urlsafe(16)
        return f"{self.name}={visitor}.{self._seal(visitor)}; Path=/; HttpOnly; SameSite=Lax"

    def _seal(self, visitor: str) -> str:
        return hmac.new(self.secret, visitor.encode(), hashlib.sha256).hexdigest()


def _names() -> tuple[str, ...]:
    name = socket.gethostname().lower()
    return (name, f"{name}.local")


def _split(address: str) -> tuple[str, int | None]:
    """Return the name and the port of an address; a port that is none makes the name empty.

    >>> _split("localhost:7860"), _split("[::1]:80"), _split("Example.org"), _split("a:b")
    (('localhost', 7860), ('::1', 80), ('example.org', None), ('', None))
    """
    try:
        parts = urlsplit(f"//{address}")
        plain = parts.netloc == address and parts.username is None
        return ((parts.hostname or "") if plain else "", parts.port)
    except ValueError:
        return ("", None)


def _plain(address: str) -> str:
    """Return an IP address as browsers write it."""
    try:
        found = ip_address(address)
    except ValueError:
        return address
    return str(getattr(found, "ipv4_mapped", None) or found)
