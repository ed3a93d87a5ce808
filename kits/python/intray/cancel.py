"""A cancellation token: once cancelled it stays so, and it runs the callbacks that others left with it."""

from __future__ import annotations

import threading
from collections.abc import Callable


class CancelToken:
    def __init__(self, parent: CancelToken | None = None) -> None:
        self._event = threading.Event()
        self._lock = threading.Lock()
        self._callbacks: dict[object, Callable[[], object]] = {}
        self._leave_parent = parent.on_cancel(self.cancel) if parent else None

    @property
    def is_cancelled(self) -> bool:
        return self._event.is_set()

    def cancel(self) -> None:
        with self._lock:
            self._event.set()
            callbacks, self._callbacks = list(self._callbacks.values()), {}
        for callback in callbacks:
            callback()

    def wait(self, timeout: float | None = None) -> bool:
        return self._event.wait(timeout)

    def on_cancel(self, callback: Callable[[], object]) -> Callable[[], object]:
        """Calls back at once if it is cancelled already. Returns what takes the callback away."""
        key = object()
        with self._lock:
            is_late = self.is_cancelled
            if not is_late:
                self._callbacks[key] = callback
        if is_late:
            callback()
        return lambda: self._callbacks.pop(key, None)

    def leave(self) -> None:
        """Ends the tie to the parent."""
        if self._leave_parent:
            self._leave_parent()


def link(stop: threading.Event | None, token: CancelToken) -> None:
    """Cancels the token when the event is set. The thread ends with either."""
    if stop is None:
        return

    def watch() -> None:
        # An event calls nobody back; the time-out is only there to end this thread after its token.
        while not token.is_cancelled:
            if stop.wait(1.0):
                token.cancel()

    threading.Thread(target=watch, name="intray-stop", daemon=True).start()
