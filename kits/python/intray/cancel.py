"""A cancellation token: once cancelled it stays so, and it runs the callbacks that others left with it."""

from __future__ import annotations

import threading
from collections.abc import Callable


class CancelToken:
    def __init__(self, parent: CancelToken | None = None, source: threading.Event | None = None) -> None:
        """Is cancelled with its parent, and when `source` is set."""
        self._event = threading.Event()
        self._source = source
        self._lock = threading.Lock()
        self._callbacks: dict[object, Callable[[], object]] = {}
        self._leave_parent = parent.on_cancel(self.cancel) if parent else None
        if source is not None:
            threading.Thread(target=self._watch, args=(source,), name="intray-stop", daemon=True).start()

    @property
    def is_cancelled(self) -> bool:
        # Not only once the thread has seen it.
        return self._event.is_set() or (self._source is not None and self._source.is_set())

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

    def _watch(self, source: threading.Event) -> None:
        # An event calls nobody back. The time-out is only there to end this thread after its token.
        while not self._event.is_set():
            if source.wait(1.0):
                self.cancel()
