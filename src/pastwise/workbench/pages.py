"""The files of the page: a fixed table from addresses to bytes, made once.

`make frontend` builds the page into ``static/``, which is part of the wheel. Nothing outside of the
table can be reached, however an address is spelled. Names with a hash never change and are cached
for good; ``index.html`` is checked each time. The content type goes by a fixed table of
endings: the tables of operating systems differ, and browsers refuse a script of the wrong type.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

from starlette.types import Receive, Scope, Send

from pastwise.errors import MissingDependencyError

STATIC = Path(__file__).parent / "static"

POLICY = "; ".join(
    [
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "font-src 'self'",
        "img-src 'self' data:",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'self'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types svelte-trusted-html",
    ]
)
"""Content security policy: everything from here, nothing inline, nothing evaluated."""

SECURITY = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}

CONTENT_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
    ".woff2": "font/woff2",
}

ENCODINGS = {"br": ".br", "gzip": ".gz"}
"""Encodings of files that were compressed when the page was built, the best first."""

NOT_BUILT = (
    "the page of the workbench is not part of this installation; in a clone, build it with: "
    "make frontend"
)


@dataclass(frozen=True)
class Page:
    """An answer.

    Attributes
    ----------
    status : int
    headers : dict
        Names in lower case.
    body : bytes
    """

    status: int
    headers: dict[str, str]
    body: bytes


@dataclass(frozen=True)
class _File:
    """A file of the page, plain and compressed."""

    headers: dict[str, str]
    body: bytes
    compressed: dict[str, bytes]


def require_page() -> None:
    """Say how to get the page where it is missing."""
    if not Pages().is_built:
        raise MissingDependencyError(NOT_BUILT)


class Pages:
    """The page as an ASGI application.

    Parameters
    ----------
    folder : Path
        Where the page was built.
    """

    def __init__(self, folder: Path = STATIC) -> None:
        self._files: dict[str, _File] = {}
        for file in sorted(folder.rglob("*")):
            if file.is_file() and file.suffix in CONTENT_TYPES:
                name = file.relative_to(folder).as_posix()
                self._files[f"/{name}"] = _read(file, is_hashed=name.startswith("assets/"))
        if "/index.html" in self._files:
            self._files["/"] = self._files["/index.html"]

    @property
    def is_built(self) -> bool:
        """Whether there is a page to show."""
        return "/" in self._files

    def has(self, path: str) -> bool:
        """Whether an address belongs to the page."""
        return path == "/" or path in self._files

    def find(self, path: str, accepted: str = "", known: str = "") -> Page:
        """The answer to a request.

        Parameters
        ----------
        path : str
            The address, such as ``/assets/index-AzEPTpxU.js``.
        accepted : str
            The header Accept-Encoding.
        known : str
            The header If-None-Match.
        """
        file = self._files.get(path)
        if file is None:
            is_missing = path == "/"
            headers = SECURITY | {"content-type": CONTENT_TYPES[".txt"]}
            body = f"{NOT_BUILT}\n".encode() if is_missing else b""
            return Page(503 if is_missing else 404, headers, body)
        if file.headers["etag"] in known:
            return Page(304, file.headers, b"")

        encodings = {part.split(";")[0].strip() for part in accepted.split(",")}
        for encoding, body in file.compressed.items():
            if encoding in encodings:
                return Page(200, file.headers | {"content-encoding": encoding}, body)
        return Page(200, file.headers, file.body)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        given = dict(scope["headers"])
        page = self.find(
            scope["path"],
            given.get(b"accept-encoding", b"").decode("latin-1"),
            given.get(b"if-none-match", b"").decode("latin-1"),
        )
        headers = [(name.encode(), value.encode()) for name, value in page.headers.items()]
        headers.append((b"content-length", str(len(page.body)).encode()))
        body = b"" if scope["method"] == "HEAD" else page.body
        await send({"type": "http.response.start", "status": page.status, "headers": headers})
        await send({"type": "http.response.body", "body": body})


def _read(file: Path, *, is_hashed: bool) -> _File:
    """A file with its headers and compressed forms."""
    body = file.read_bytes()
    headers = SECURITY | {
        "content-type": CONTENT_TYPES[file.suffix],
        "cache-control": "public, max-age=31536000, immutable" if is_hashed else "no-cache",
        "etag": f'"{hashlib.sha256(body).hexdigest()[:32]}"',
        "vary": "accept-encoding",
    }
    compressed = {}
    for encoding, ending in ENCODINGS.items():
        packed = file.with_name(file.name + ending)
        if packed.is_file():
            compressed[encoding] = packed.read_bytes()
    return _File(headers, body, compressed)
