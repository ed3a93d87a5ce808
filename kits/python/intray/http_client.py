"""HTTP to one service: a deadline for the connection and one for the whole request, connections that are kept, no redirects.
Every failure is an Unavailable; the token is in the request and nowhere else."""

from __future__ import annotations

import functools
import http.client
import io
import re
import socket
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

from .answers import Answer, error_of
from .cancel import CancelToken
from .errors import Unavailable

_MAX_ANSWER_BYTES = 65_536
_MAX_KEPT = 32


class HttpClient:
    def __init__(self, url: str, token: str, connect_timeout: float, request_timeout: float) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError("url is not an address such as https://intray.example.")
        if parts.username is not None or parts.password is not None:
            raise ValueError("url has a user or a password. Remove it.")
        if not re.fullmatch(r"[\x21-\x7e]+", token):
            raise ValueError("token is empty, or has characters that no token has.")
        self._is_secure = parts.scheme == "https"
        self._host, self._port = parts.hostname, parts.port
        # Also takes the address that senders post to.
        self._base = re.sub(r"/(v1/inbox/events|api/inbox)/?$", "", parts.path).rstrip("/")
        self._token = token
        self._connect_timeout = connect_timeout
        self._request_timeout = request_timeout
        self._lock = threading.Lock()
        self._kept: list[_Connection] = []
        self._is_closed = False

    def close(self) -> None:
        """Ends the connections that nobody uses."""
        with self._lock:
            self._is_closed = True
            kept, self._kept = self._kept, []
        for connection in kept:
            connection.close()

    def post(
        self,
        path: str,
        body: bytes,
        cancel: CancelToken,
        headers: Mapping[str, str] | None = None,
        extra_s: float = 0.0,
        max_answer_bytes: int = _MAX_ANSWER_BYTES,
    ) -> Answer:
        """`extra_s` is added to the deadline: for calls that the service answers late on request."""
        deadline = time.monotonic() + self._request_timeout + extra_s
        all_headers = {"Content-Type": "application/json", **(headers or {})}
        connection = self._take_kept()
        if connection is not None:
            try:
                return self._exchange(connection, path, body, all_headers, deadline, cancel, max_answer_bytes)
            except _Stale:
                # The service closed it while the request was on its way. A message sent twice is stored once.
                pass
        connection = self._new_connection()
        return self._exchange(connection, path, body, all_headers, deadline, cancel, max_answer_bytes)

    def open(self, path: str, headers: Mapping[str, str], cancel: CancelToken, silence_s: float) -> Iterator[bytes]:
        """The pieces of an answer that does not end; ends when the connection does, or is silent for too long."""
        connection = self._new_connection()
        leave = cancel.on_cancel(connection.abort)
        try:
            try:
                connection.start("GET", path, None, self._headers(headers), time.monotonic() + self._request_timeout)
                response = connection.getresponse()
                if response.status != 200:
                    raise error_of(_read(response, _MAX_ANSWER_BYTES))
            except (OSError, ValueError, http.client.HTTPException) as error:
                raise _unanswered(error, cancel) from None
            while True:
                # Only while this waits: a slow consumer is no silence.
                connection.deadline.at = time.monotonic() + silence_s
                try:
                    piece = response.read1(65_536)
                except (OSError, ValueError, http.client.HTTPException):
                    return
                if not piece:
                    return
                yield piece
        finally:
            leave()
            connection.close()

    def _exchange(
        self,
        connection: _Connection,
        path: str,
        body: bytes,
        headers: Mapping[str, str],
        deadline: float,
        cancel: CancelToken,
        max_answer_bytes: int,
    ) -> Answer:
        is_reused = connection.sock is not None
        leave = cancel.on_cancel(connection.abort)
        try:
            connection.start("POST", path, body, self._headers(headers), deadline)
            response = connection.getresponse()
            answer = _read(response, max_answer_bytes)
        except (OSError, ValueError, http.client.HTTPException) as error:
            leave()
            connection.close()
            is_broken = isinstance(error, ConnectionError)
            if is_reused and is_broken and not cancel.is_cancelled:
                raise _Stale from None
            raise _unanswered(error, cancel) from None
        leave()
        self._keep(connection, response)
        return answer

    def _headers(self, headers: Mapping[str, str]) -> dict[str, str]:
        return {**headers, "Authorization": f"Bearer {self._token}", "User-Agent": "intray-python"}

    def _new_connection(self) -> _Connection:
        kind = _SecureConnection if self._is_secure else _PlainConnection
        connection = kind(self._host, self._port, timeout=self._connect_timeout)
        connection.base = self._base
        return connection

    def _take_kept(self) -> _Connection | None:
        with self._lock:
            return self._kept.pop() if self._kept else None

    def _keep(self, connection: _Connection, response: http.client.HTTPResponse) -> None:
        with self._lock:
            is_usable = response.status >= 200 and not response.will_close and not connection.is_aborted
            if is_usable and not self._is_closed and len(self._kept) < _MAX_KEPT:
                self._kept.append(connection)
                return
        connection.close()


class _Stale(Exception):
    """A kept connection broke before its answer."""


class _Deadline:
    at = float("inf")

    def left(self) -> float:
        left = self.at - time.monotonic()
        if left <= 0:
            raise TimeoutError("no answer in time")
        return left


class _DeadlineReader(io.RawIOBase):
    """Reads a socket with what is left of the time: also an answer that comes byte by byte has to be there in time."""

    def __init__(self, sock: socket.socket, raw: Any, deadline: _Deadline) -> None:
        self._sock, self._raw, self._deadline = sock, raw, deadline

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        self._sock.settimeout(self._deadline.left())
        count: int | None = self._raw.readinto(buffer)
        return count

    def close(self) -> None:
        self._raw.close()
        super().close()


class _Response(http.client.HTTPResponse):
    def __init__(self, sock: socket.socket, *args: Any, deadline: _Deadline, **kwargs: Any) -> None:
        super().__init__(sock, *args, **kwargs)
        raw: Any = self.fp
        self.fp = io.BufferedReader(_DeadlineReader(sock, raw.detach(), deadline))

    def _read_status(self) -> tuple[str, int, str]:
        # Of interim answers the standard library passes over 100 alone. After a 103 the real answer would be left on the
        # connection, and count for the next request.
        while True:
            version, status, reason = super()._read_status()  # type: ignore[misc]
            if not 102 <= status < 200:
                return version, status, reason
            http.client.parse_headers(self.fp)


class _Connection(http.client.HTTPConnection):
    base = ""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.deadline = _Deadline()
        self.is_aborted = False
        self.response_class = functools.partial(_Response, deadline=self.deadline)  # type: ignore[assignment]

    def start(self, method: str, path: str, body: bytes | None, headers: Mapping[str, str], deadline: float) -> None:
        self.deadline.at = deadline
        if self.sock is None:
            self.connect()
        if self.is_aborted:
            raise _Cancelled
        self.sock.settimeout(self.deadline.left())
        self.request(method, self.base + path, body=body, headers=dict(headers))

    def abort(self) -> None:
        """From another thread: what reads or writes fails at once."""
        self.is_aborted = True
        sock = self.sock
        if sock is not None:
            with suppress(OSError):
                socket.socket.shutdown(sock, socket.SHUT_RDWR)


class _Cancelled(ConnectionError):
    """Also of a kept connection that the last request's cancellation reached late: then the request gets a new one."""


class _PlainConnection(_Connection):
    pass


class _SecureConnection(_Connection, http.client.HTTPSConnection):
    pass


def _read(response: http.client.HTTPResponse, max_bytes: int) -> Answer:
    """Fails for an answer that is longer than any of the service, and one that breaks off."""
    body = response.read(max_bytes + 1)
    if len(body) > max_bytes:
        raise ValueError(f"the answer is longer than {max_bytes} bytes")
    if not response.isclosed():
        response.read()
    headers = {name.lower(): value for name, value in response.getheaders()}
    return Answer(response.status, headers, body.decode("utf-8", "replace"))


def _unanswered(error: Exception, cancel: CancelToken) -> Unavailable:
    if cancel.is_cancelled:
        return Unavailable(None, "aborted", "the request was aborted")
    if isinstance(error, TimeoutError):
        return Unavailable(None, "timeout", str(error) or "no answer in time")
    return Unavailable(None, type(error).__name__, str(error) or "no answer")
