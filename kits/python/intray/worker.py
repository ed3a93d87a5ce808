"""Claims events and hands them to a handler: the events of a conversation one after another, conversations side by side. An
event is acknowledged when its handler is done and released when it failed. A stop lets the handlers finish for a while and
gives back what is left."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from .backoff import backoff_s
from .cancel import CancelToken
from .claims import Claims, Failure
from .errors import LeaseLost, Unavailable, Unrecoverable
from .events import ClaimedEvent
from .lease import Lease

_WAIT_S = 2
"""A stop waits for the claim that is under way: its events would stay leased otherwise."""
_WAIT_FOR_FIX_S = 60.0
_LONGEST_PAUSE_S = 15.0
_MAX_ERROR_LENGTH = 500
"""The service counts characters outside of the Basic Multilingual Plane as two, and takes 1000."""
_MAX_CLAIMED = 200
"""Of one claim."""


class WorkContext:
    """For handlers that take long: what a handler does once it is over does not count."""

    def __init__(self, lease: Lease) -> None:
        self._lease = lease

    @property
    def is_over(self) -> bool:
        """True when the lease is lost, or the time of a stop is over."""
        return self._lease.over.is_cancelled

    def wait(self, timeout: float | None = None) -> bool:
        """Waits until it is over, at most this long. Returns whether it is."""
        return self._lease.over.wait(timeout)


Handler = Callable[[ClaimedEvent, WorkContext], object]


class Worker:
    def __init__(
        self,
        claims: Claims,
        handler: Handler,
        concurrency: int,
        lease_s: int,
        stop_s: float,
        stop: CancelToken,
        on_problem: Callable[[Exception], None],
    ) -> None:
        """`stop_s`: how long handlers may go on after a stop."""
        self._claims = claims
        self._handler = handler
        self._concurrency = concurrency
        self._lease_s = lease_s
        self._stop = stop
        self._on_problem = on_problem
        self._time_is_over = CancelToken()
        self._timer = threading.Timer(stop_s, self._time_is_over.cancel)
        self._timer.daemon = True
        # Guards everything below, and is notified of every change of it.
        self._changed = threading.Condition()
        self._is_stopping = False
        self._is_claiming = False
        self._runs = 0

    def run(self) -> None:
        """Returns when the worker has stopped; raises if the service refuses its claims."""
        leave = self._stop.on_cancel(self._begin_stop)
        try:
            self._claim_until_stopped()
        finally:
            # Also after an error: what is under way is finished or given back.
            self._begin_stop()
            with self._changed:
                self._changed.wait_for(lambda: self._runs == 0)
            self._timer.cancel()
            leave()

    def _begin_stop(self) -> None:
        with self._changed:
            if self._is_stopping:
                return
            self._is_stopping = True
            self._changed.notify_all()
        self._timer.start()

    def _must_stop(self) -> bool:
        """Also after an error of a claim, and before the token has called back."""
        return self._is_stopping or self._stop.is_cancelled

    def _claim_until_stopped(self) -> None:
        failures = 0
        has_told_of_fix = False
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._must_stop() or self._runs < self._concurrency)
                if self._must_stop():
                    return
                limit = min(self._concurrency - self._runs, _MAX_CLAIMED)
                self._is_claiming = True
            try:
                self._claim(limit)
                failures = 0
                has_told_of_fix = False
                continue
            except Unavailable as error:
                problem = error
            finally:
                with self._changed:
                    self._is_claiming = False
                    self._changed.notify_all()
            if self._must_stop():
                return
            failures += 1
            if problem.needs_fix and not has_told_of_fix:
                self._on_problem(problem)
            has_told_of_fix = problem.needs_fix
            pause_s = backoff_s(failures, problem.retry_after, _LONGEST_PAUSE_S)
            self._stop.wait(_WAIT_FOR_FIX_S if problem.needs_fix else pause_s)

    def _claim(self, limit: int) -> None:
        claimed_at = time.monotonic()
        events = self._claims.claim(limit, self._lease_s, _WAIT_S, self._time_is_over)
        for run in _runs_of(events):
            lease = Lease(self._claims, self._lease_s, run[0], claimed_at, self._time_is_over)
            with self._changed:
                self._runs += 1
            threading.Thread(target=self._work, args=(run, lease), name="intray-work", daemon=True).start()

    def _work(self, run: list[ClaimedEvent], lease: Lease) -> None:
        """The events of one conversation, in order."""
        try:
            for event in run:
                lease.event = event
                if self._must_stop():
                    # With it, those behind it are given back.
                    self._release(event, lease, None)
                    break
                if not self._handle(event, lease):
                    break
        except Exception as error:
            self._on_problem(error)
        finally:
            lease.end()
            with self._changed:
                self._runs -= 1
                self._changed.notify_all()

    def _handle(self, event: ClaimedEvent, lease: Lease) -> bool:
        """False if the rest of the run has to wait."""
        # A handler whose lease is lost keeps its place until it ends; one that has no more time is left alone.
        ended = CancelToken(self._time_is_over)
        failures: list[Failure | None] = []

        def handle() -> None:
            try:
                self._handler(event, WorkContext(lease))
                failures.append(None)
            except BaseException as error:
                failures.append(Failure(_text_of(error), isinstance(error, Unrecoverable)))
            finally:
                ended.cancel()

        threading.Thread(target=handle, name=f"intray-event-{event['id']}", daemon=True).start()
        ended.wait()
        ended.leave()
        if lease.lost.is_cancelled:
            raise LeaseLost(event["id"])
        if failures == [None]:
            self._settle(event, lease, lambda: self._claims.ack(event, lease.lost))
            return True
        is_late = self._time_is_over.is_cancelled or not failures
        self._release(event, lease, None if is_late else failures[0])
        return False

    def _release(self, event: ClaimedEvent, lease: Lease, failure: Failure | None) -> None:
        with self._changed:
            # A claim of ours that still waits would get what is given back.
            self._changed.wait_for(lambda: not self._must_stop() or not self._is_claiming)
        self._settle(event, lease, lambda: self._claims.release(event, failure, lease.lost))

    def _settle(self, event: ClaimedEvent, lease: Lease, call: Callable[[], bool]) -> None:
        """Tries until the service has answered or the lease is lost, which raises. When the time is over, one try is left."""
        tries = 1
        while True:
            try:
                if call():
                    return
                raise LeaseLost(event["id"])
            except Unavailable as error:
                if lease.lost.is_cancelled:
                    raise LeaseLost(event["id"]) from None
                if self._time_is_over.is_cancelled:
                    raise
                lease.over.wait(backoff_s(tries, error.retry_after, _LONGEST_PAUSE_S))
                tries += 1


def _text_of(error: BaseException) -> str:
    """As the service takes it: no half characters, no U+0000."""
    text = f"{type(error).__name__}: {error}"[:_MAX_ERROR_LENGTH]
    return text.encode("utf-8", "replace").decode().replace("\0", " ")


def _runs_of(events: list[ClaimedEvent]) -> list[list[ClaimedEvent]]:
    """Consecutive events of one conversation; an event without one is a run of its own."""
    runs: dict[str, list[ClaimedEvent]] = {}
    for event in events:
        conversation = event["conversation_id"]
        key = f"e{event['id']}" if conversation is None else f"c{conversation}"
        runs.setdefault(key, []).append(event)
    return list(runs.values())
