"""Keeps one lease: extends it in time, and knows when it is lost, by an answer or because it could not be extended."""

from __future__ import annotations

import threading
import time

from .backoff import backoff_s
from .cancel import CancelToken
from .claims import Claims
from .errors import Refused, Unavailable
from .events import ClaimedEvent


class Lease:
    def __init__(self, claims: Claims, lease_s: int, event: ClaimedEvent, claimed_at: float, time_over: CancelToken) -> None:
        self._claims = claims
        self._lease_s = lease_s
        # By time.monotonic(), and never later than by the service's clock: counted from before the request.
        self._ends_at = claimed_at + lease_s
        self.event = event
        """The event of the run that is worked on: extending it extends those behind it."""
        self.lost = CancelToken()
        """Calls with it are pointless once it is cancelled."""
        self.over = CancelToken(time_over)
        """Cancelled when the lease is lost or its worker has no more time."""
        self._ended = CancelToken()
        # An answer that comes after the lease has ended is of no use.
        self._thread = threading.Thread(target=self._keep, name="intray-lease", daemon=True)
        self._thread.start()

    def end(self) -> None:
        self._ended.cancel()
        self.over.leave()

    def _lose(self) -> None:
        self._ended.cancel()
        self.lost.cancel()
        self.over.cancel()

    def _keep(self) -> None:
        failures = 0
        wait_s = self._lease_s / 3
        while not self._ended.wait(max(0.0, min(wait_s, self._ends_at - time.monotonic()))):
            event = self.event
            asked_at = time.monotonic()
            if asked_at >= self._ends_at:
                return self._lose()
            too_late = CancelToken(self._ended)
            timer = threading.Timer(self._ends_at - asked_at, too_late.cancel)
            timer.daemon = True
            timer.start()
            try:
                is_extended = self._claims.extend(event, self._lease_s, too_late)
            except Refused:
                return None if self._ended.is_cancelled else self._lose()
            except Unavailable:
                failures += 1
                wait_s = backoff_s(failures, None, self._lease_s / 6)
                continue
            finally:
                timer.cancel()
                too_late.leave()
            if self._ended.is_cancelled:
                return None
            if is_extended:
                failures = 0
                self._ends_at = asked_at + self._lease_s
                wait_s = self._lease_s / 3
            elif event is self.event:
                return self._lose()
            else:
                # The event was acknowledged meanwhile, and the next one is worked on.
                wait_s = 0.0
        return None
