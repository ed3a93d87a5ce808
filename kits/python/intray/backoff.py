"""How long to wait before a retry: exponential back-off with full jitter, never less than the service asks for."""

from __future__ import annotations

import random

_FIRST_S = 1.0
_LONGEST_S = 300.0


def backoff_s(tries: int, retry_after: float | None, longest_s: float = _LONGEST_S) -> float:
    """`tries` that failed so far, at least 1."""
    ceiling = min(longest_s, _FIRST_S * 2 ** min(tries - 1, 30))
    return max(retry_after or 0.0, random.random() * ceiling)
