"""The browsers that may use the app, each known by a signed cookie."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, final

if TYPE_CHECKING:
    from starlette.requests import Request


@final
@dataclass(frozen=True, kw_only=True)
class Browsers:
    """The browsers that have loaded the page, each known by a cookie that this process has signed."""

    port: int
    token: str | None = field(repr=False)
    """Token that a browser must show to load the page; None: no token is needed."""
    secret: bytes = field(default_factory=lambda: secrets.token_bytes(32), repr=False)
    """Key that cookies are signed with."""

    @property
    def cookie_name(self) -> str:
        """The cookie's name, which contains the port: a host's cookies are shared by all its ports."""
        return f"repeat-xai-{self.port}"

    def first_address(self, host: str) -> str:
        """Return the address that a browser opens first, with the token if one is needed."""
        name = f"[{host}]" if ":" in host else host
        return f"http://{name}:{self.port}" + (f"/?token={self.token}" if self.token else "")

    def identify(self, request: Request) -> str | None:
        """Return the identity of the browser that sent a request, or None if it has no cookie of this app."""
        browser, _, signature = request.cookies.get(self.cookie_name, "").partition(".")
        return browser if hmac.compare_digest(signature.encode(), self._signature(browser).encode()) else None

    def has_token(self, request: Request) -> bool:
        """Tell whether a request shows the token, or needs none."""
        token = request.query_params.get("token", "")
        return self.token is None or hmac.compare_digest(token.encode(), self.token.encode())

    def new_cookie(self) -> str:
        """Return a cookie with a new identity: scripts cannot read it, and other sites cannot send it."""
        browser = secrets.token_urlsafe(16)
        return f"{self.cookie_name}={browser}.{self._signature(browser)}; Path=/; HttpOnly; SameSite=Lax"

    def _signature(self, browser: str) -> str:
        return hmac.new(self.secret, browser.encode(), hashlib.sha256).hexdigest()
