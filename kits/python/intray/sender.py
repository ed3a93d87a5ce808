"""Takes rows from the outbox to the service: several at a time, again after a failure, for ever."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable

from .answers import MAX_RETRY_AFTER_S
from .backoff import backoff_s
from .cancel import CancelToken
from .errors import Refused, Unavailable
from .outbox import Outbox, OutboxCounts, OutboxRow

_WAIT_FOR_FIX_MS = 60_000
"""While the token or the address is wrong."""
_LOOK_EVERY_MS = 30_000
"""Rows whose process died, or that another process added, are found this late."""
_AFTER_DISK_ERROR_MS = 5000
_MANY_FAILURES = 8
"""After so many failures in a row, rows are tried one by one, with a pause between them."""
_LONGEST_GAP_MS = 5000
_PRUNE_EVERY_MS = 3_600_000
_MAX_ERROR_LENGTH = 500


class Sender:
    def __init__(
        self,
        outbox: Outbox,
        deliver: Callable[[OutboxRow, CancelToken], object],
        concurrency: int,
        keep_sent_ms: int,
        now: Callable[[], int],
        on_problem: Callable[[Exception], None],
    ) -> None:
        """`deliver` raises Refused or Unavailable and nothing else."""
        self._outbox = outbox
        self._deliver = deliver
        self._concurrency = concurrency
        self._keep_sent_ms = keep_sent_ms
        self._now = now
        self._on_problem = on_problem
        self._cancel = CancelToken()
        # Guards everything below, and is notified of every change of it.
        self._changed = threading.Condition()
        self._in_flight = 0
        self._ended = 0
        self._looks_asked = 1
        self._looks_done = 0
        self._is_stopped = False
        self._paused_until = 0
        self._needs_fix = False
        self._failures = 0
        self._prune_at = 0
        # By the clock. Later than any time before the first look: an earlier process may have had a clock that was ahead.
        self._looked_at: float = float("inf")
        # A thread that keeps no process alive: what waits is on disk.
        self._pump = threading.Thread(target=self._look_for_ever, name="intray-outbox", daemon=True)
        self._pump.start()

    def wake(self) -> None:
        """Asks for a look at the rows that are due."""
        with self._changed:
            self._looks_asked += 1
            self._changed.notify_all()

    def flush(self, timeout: float | None = None) -> OutboxCounts:
        """Sends until nothing is due, or nothing can be sent, or the time is over."""
        cancel = CancelToken()
        timer = None
        if timeout is not None:
            timer = threading.Timer(max(0.0, timeout), self._end_wait, [cancel])
            timer.daemon = True
            timer.start()
        try:
            with self._changed:
                while not self._is_stopped and not cancel.is_cancelled:
                    self._looks_asked += 1
                    asked = self._looks_asked
                    self._changed.notify_all()
                    self._changed.wait_for(
                        lambda: self._looks_done >= asked or self._is_stopped or cancel.is_cancelled
                    )
                    if self._in_flight == 0:
                        break
                    ended = self._ended
                    self._changed.wait_for(
                        lambda: self._ended != ended or self._is_stopped or cancel.is_cancelled
                    )
        finally:
            if timer:
                timer.cancel()
        return self._outbox.counts()

    def stop(self) -> OutboxCounts:
        """Ends what is under way; its rows stay in the outbox. Returns what is left; may be called again."""
        with self._changed:
            self._is_stopped = True
            self._changed.notify_all()
        self._cancel.cancel()
        self._pump.join()
        with self._changed:
            self._changed.wait_for(lambda: self._in_flight == 0)
        return self._outbox.counts()

    def _end_wait(self, cancel: CancelToken) -> None:
        with self._changed:
            cancel.cancel()
            self._changed.notify_all()

    def _look_for_ever(self) -> None:
        while True:
            with self._changed:
                if self._is_stopped:
                    return
                asked = self._looks_asked
            wait_ms = self._look()
            with self._changed:
                self._looks_done = asked
                self._changed.notify_all()
                is_asked = lambda: self._looks_asked != asked or self._is_stopped  # noqa: E731
                self._changed.wait_for(is_asked, None if wait_ms is None else wait_ms / 1000)

    def _look(self) -> int | None:
        """Returns when to look again at the latest. With all places taken, the end of a request looks again."""
        with self._changed:
            places = self._concurrency if self._failures < _MANY_FAILURES else 1
            room = places - self._in_flight
            paused_until = self._paused_until
        if room <= 0:
            return None
        now = self._now()
        try:
            if now < self._looked_at:
                # The clock was set back, and nothing waits for it to be as late again.
                paused_until = self._prune_at = 0
                with self._changed:
                    self._paused_until = 0
                self._outbox.correct_times(now + int(1000 * MAX_RETRY_AFTER_S), now)
            self._looked_at = now
            if now >= self._prune_at:
                self._prune_at = now + _PRUNE_EVERY_MS
                self._outbox.prune(now - self._keep_sent_ms)
            if now >= paused_until:
                rows = self._outbox.claim(room, now)
                for row in rows:
                    self._start(row)
                if len(rows) == room:
                    return None
            next_at = self._outbox.next_at()
        except Exception as error:
            self._on_problem(error)
            return _AFTER_DISK_ERROR_MS
        if next_at is None:
            return _LOOK_EVERY_MS
        return min(_LOOK_EVERY_MS, max(1, max(next_at, paused_until) - self._now()))

    def _start(self, row: OutboxRow) -> None:
        with self._changed:
            self._in_flight += 1
        try:
            threading.Thread(target=self._send, args=(row,), name="intray-send", daemon=True).start()
        except BaseException:
            self._end_one()
            raise

    def _send(self, row: OutboxRow) -> None:
        try:
            self._send_one(row)
        except Exception as error:
            self._on_problem(error)
        finally:
            self._end_one()

    def _end_one(self) -> None:
        with self._changed:
            self._in_flight -= 1
            self._ended += 1
            self._looks_asked += 1
            self._changed.notify_all()

    def _send_one(self, row: OutboxRow) -> None:
        try:
            self._deliver(row, self._cancel)
        except Refused as error:
            self._is_answered()
            self._outbox.refused(row, _text_of(error), self._now())
            self._on_problem(error)
        except Unavailable as error:
            self._keep(row, error)
        else:
            self._is_answered()
            self._outbox.sent(row, self._now())

    def _keep(self, row: OutboxRow, error: Unavailable) -> None:
        now = self._now()
        next_at = now
        is_new = False
        with self._changed:
            if error.needs_fix:
                # Said once, until an answer shows that it is mended.
                is_new = not self._needs_fix
                self._needs_fix = True
                self._paused_until = now + _WAIT_FOR_FIX_MS
            elif not self._is_stopped:
                self._failures += 1
                if self._failures >= _MANY_FAILURES:
                    self._paused_until = now + int(random.random() * _LONGEST_GAP_MS)
                next_at = now + int(1000 * backoff_s(row.attempts, error.retry_after))
        if is_new:
            self._on_problem(error)
        self._outbox.retry(row, next_at, _text_of(error), now)

    def _is_answered(self) -> None:
        with self._changed:
            self._failures = 0
            self._needs_fix = False


def _text_of(error: Refused | Unavailable) -> str:
    """As SQLite takes it: what stands between may answer with half characters."""
    return f"{error.code}: {error.message}"[:_MAX_ERROR_LENGTH].encode("utf-8", "replace").decode()
