"""The client: one outbox, one sender and the calls of a program."""

from __future__ import annotations

import json
import logging
import os
import re
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from types import TracebackType
from typing import Any, NamedTuple

from .answers import receipt_of
from .cancel import CancelToken
from .claims import Claims
from .errors import Refused, Unavailable
from .events import FollowedEvent, Receipt
from .follow import follow
from .http_client import HttpClient
from .outbox import NewMessage, Outbox, OutboxCounts, OutboxRow
from .sender import Sender
from .worker import Handler, Worker

_EVENTS = "/v1/inbox/events"
_DAY_MS = 86_400_000
_MAX_LISTED = 1000
_NOTHING = OutboxCounts(0, 0, None)
_log = logging.getLogger("intray")


class Sent(NamedTuple):
    source_ref: str
    receipt: Receipt | None
    """None while the message waits in the outbox."""


class RefusedMessage(NamedTuple):
    id: int
    source_ref: str
    channel_ref: str | None
    created_at: int
    """In ms since 1970."""
    body: str
    error: str


class Intray:
    def __init__(
        self,
        url: str,
        token: str,
        *,
        outbox: str | os.PathLike[str],
        concurrency: int = 8,
        connect_timeout: float = 5.0,
        request_timeout: float = 15.0,
        keep_sent_days: float = 7.0,
        on_problem: Callable[[Exception], None] | None = None,
        now: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
    ) -> None:
        """`outbox` is the file that keeps messages until the service has them; "none" sends directly, and loses what cannot be
        sent. `on_problem` is called for what somebody has to look at, in another thread; without it, a warning is logged.
        `now` is the clock, in ms since 1970."""
        path = os.fspath(outbox)
        if not path:
            raise ValueError('outbox is missing. Name a file for it, or "none".')
        _must_be_positive(concurrency)
        self._http = HttpClient(url, token, connect_timeout, request_timeout)
        self._now = now
        self._tell = on_problem
        self._closing = CancelToken()
        self._pid = os.getpid()
        self._changed = threading.Condition()
        self._works = 0
        self._close_lock = threading.Lock()
        self._left: OutboxCounts | None = None
        self._outbox: Outbox | None = None
        self._sender: Sender | None = None
        if path != "none":
            self._outbox = Outbox(path)
            keep_sent_ms = int(keep_sent_days * _DAY_MS)
            self._sender = Sender(self._outbox, self._deliver, concurrency, keep_sent_ms, now, self._on_problem)

    def __enter__(self) -> Intray:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def send(self, message: Mapping[str, Any], *, traceparent: str | None = None) -> Sent:
        """Returns when the message is on disk; with outbox "none", when the service has it."""
        if self._closing.is_cancelled:
            raise RuntimeError("The client is closed.")
        self._must_be_our_process()
        row = _row_of(message, traceparent)
        if self._outbox is None or self._sender is None:
            return Sent(row.source_ref, self._deliver(row, self._closing))
        self._outbox.add(row, self._now())
        self._sender.wake()
        return Sent(row.source_ref, None)

    def flush(self) -> OutboxCounts:
        """Sends what is due. Returns when nothing is due any more or nothing can be sent, with what is left."""
        self._must_be_our_process()
        return self._left or (self._sender.flush() if self._sender else _NOTHING)

    def refused(self, *, after_id: int = 0) -> list[RefusedMessage]:
        """The messages that the service refused, oldest first, at most 1000."""
        rows = self._outbox.list_refused(after_id, _MAX_LISTED) if self._outbox else []
        return [
            RefusedMessage(
                row.id, row.source_ref, row.channel_ref, row.created_at, row.body.decode(), row.last_error or ""
            )
            for row in rows
        ]

    def resend(self, id: int) -> bool:
        """Sends a refused message again, the same bytes. False if there is none with that id."""
        if self._outbox is None or self._sender is None:
            return False
        is_there = self._outbox.resend(id, self._now())
        self._sender.wake()
        return is_there

    def work(
        self,
        handler: Handler,
        *,
        concurrency: int = 4,
        stop: threading.Event | None = None,
        subscription: str | None = None,
        lease_s: int = 60,
        stop_s: float = 10.0,
    ) -> None:
        """Processes events until `stop` is set or the client is closed. Raises Refused if the service refuses the claims.
        `concurrency` conversations at once; their handlers run in threads. Events stay ours for `lease_s` if this process
        dies; while it lives, leases are extended. After a stop handlers may go on for `stop_s`; then their events are given
        back."""
        _must_be_positive(concurrency)
        self._must_be_our_process()
        with self._changed:
            self._works += 1
        token = CancelToken(self._closing, stop)
        try:
            claims = Claims(self._http, subscription)
            Worker(claims, handler, concurrency, lease_s, stop_s, token, self._on_problem).run()
        finally:
            token.leave()
            token.cancel()
            with self._changed:
                self._works -= 1
                self._changed.notify_all()

    def follow(
        self, *, after: int | None = None, stop: threading.Event | None = None, silence_s: float = 35.0
    ) -> Iterator[FollowedEvent]:
        """New events and revisions, in the order of their ids, without their bodies: those after an id, or from now on.
        Ends when `stop` is set or the client is closed."""
        self._must_be_our_process()
        token = CancelToken(self._closing, stop)
        try:
            yield from follow(self._http, after, silence_s, token, self._on_problem)
        finally:
            token.leave()
            token.cancel()

    def close(self, timeout: float = 10.0) -> OutboxCounts:
        """Stops everything. Goes on sending what is due for at most `timeout` seconds and returns what is left."""
        deadline = time.monotonic() + timeout
        self._closing.cancel()
        with self._close_lock:
            if self._left is None:
                self._left = self._close(deadline)
            return self._left

    def _close(self, deadline: float) -> OutboxCounts:
        with self._changed:
            self._changed.wait_for(lambda: self._works == 0, max(0.0, deadline - time.monotonic()))
        left = _NOTHING
        if self._outbox and self._sender and self._pid == os.getpid():
            self._sender.flush(deadline - time.monotonic())
            left = self._sender.stop()
            self._outbox.close()
        self._http.close()
        return left

    def _deliver(self, message: NewMessage | OutboxRow, cancel: CancelToken) -> Receipt:
        headers = {} if message.traceparent is None else {"traceparent": message.traceparent}
        try:
            return receipt_of(self._http.post(_EVENTS, message.body, cancel, headers))
        except (Refused, Unavailable):
            raise
        except Exception as error:
            raise Unavailable(None, "no answer", type(error).__name__) from None

    def _on_problem(self, error: Exception) -> None:
        # Whatever the callback does: the thread that calls it goes on.
        try:
            if self._tell:
                self._tell(error)
            else:
                _log.warning("%s: %s", type(error).__name__, error)
        except Exception:
            _log.exception("on_problem failed")

    def _must_be_our_process(self) -> None:
        # Threads do not survive a fork, and a SQLite connection must not.
        if os.getpid() != self._pid:
            raise RuntimeError("The client was made before this process was forked. Make one after the fork.")


def _must_be_positive(concurrency: int) -> None:
    if concurrency < 1:
        raise ValueError("concurrency is a number from 1.")


def _row_of(message: Mapping[str, Any], traceparent: str | None) -> NewMessage:
    """The bytes are made here, once, and never change."""
    if not isinstance(message, Mapping):
        raise TypeError("A message is a dict.")
    given, channel_ref = message.get("source_ref"), _ref_of(message.get("channel_ref"))
    source_ref = _ref_of(given) or str(uuid.uuid4())
    # One of another type is left as it is: the service refuses it, and says why.
    is_unusable = given is not None and not isinstance(given, str) and _ref_of(given) is None
    refs = {"source_ref": given if is_unusable else source_ref}
    if channel_ref is not None:
        refs["channel_ref"] = channel_ref
    # One that no header can hold is left out: the message matters more.
    if traceparent is not None and not re.fullmatch(r"[\x21-\x7e]+", traceparent):
        traceparent = None
    channel = None if channel_ref is None else _text(channel_ref)
    return NewMessage(_text(source_ref), channel, traceparent, _json_of({**message, **refs}))


def _json_of(message: dict[str, Any]) -> bytes:
    # ValueError for NaN, which is no JSON.
    try:
        return json.dumps(message, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()
    except UnicodeEncodeError:
        # Half of a surrogate pair has no UTF-8, but an escape.
        return json.dumps(message, separators=(",", ":"), allow_nan=False).encode()


def _text(ref: str) -> str:
    """As SQLite takes it."""
    return ref.encode("utf-8", "replace").decode()


def _ref_of(value: object) -> str | None:
    """As the service reads it: white space and nothing are the same, and a number stands for its digits."""
    if type(value) is int:
        return str(value)
    return value if isinstance(value, str) and value.strip() != "" else None
