"""Follows what comes in: reconnects by itself after the last id it received, also when the service falls silent."""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Callable, Iterator
from typing import cast

from .backoff import backoff_s
from .cancel import CancelToken
from .errors import Unavailable
from .events import FollowedEvent
from .http_client import HttpClient

_WAIT_FOR_FIX_S = 60.0
_LONGEST_PAUSE_S = 15.0


def follow(
    http: HttpClient,
    after: int | None,
    silence_s: float,
    stop: CancelToken,
    on_problem: Callable[[Exception], None],
) -> Iterator[FollowedEvent]:
    """Ends when `stop` is cancelled. Raises Refused if the service does not take the request."""
    last_id = None if after is None else str(after)
    failures = 0
    has_told_of_fix = False
    while not stop.is_cancelled:
        resume = {} if last_id is None else {"Last-Event-ID": last_id}
        headers = {"Accept": "text/event-stream", **resume}
        problem: Unavailable | None = None
        try:
            for id, data in _blocks(http.open("/v1/inbox/stream", headers, stop, silence_s)):
                failures = 0
                has_told_of_fix = False
                last_id = id or last_id
                if data is not None:
                    yield cast(FollowedEvent, json.loads(data))
                if stop.is_cancelled:
                    return
        except Unavailable as error:
            problem = error
        if problem and problem.needs_fix:
            if not has_told_of_fix and not stop.is_cancelled:
                on_problem(problem)
            has_told_of_fix = True
            stop.wait(_WAIT_FOR_FIX_S)
        else:
            failures += 1
            stop.wait(backoff_s(failures, problem.retry_after if problem else None, _LONGEST_PAUSE_S))


def _blocks(pieces: Iterator[bytes]) -> Iterator[tuple[str | None, str | None]]:
    """The id to resume after and one line of JSON of each block; neither in a heartbeat."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    rest = ""
    for piece in pieces:
        *blocks, rest = (rest + decoder.decode(piece)).split("\n\n")
        for block in blocks:
            yield _field("id", block), _field("data", block)


def _field(name: str, block: str) -> str | None:
    found = re.search(rf"^{name}: ([^\n]*)$", block, re.MULTILINE)
    return found[1] if found else None
