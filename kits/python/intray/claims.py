"""The calls of a processor: claim, acknowledge, extend, release."""

from __future__ import annotations

import json
from typing import Any, NamedTuple, cast

from .answers import result_of
from .cancel import CancelToken
from .events import ClaimedEvent
from .http_client import HttpClient

_MAX_CLAIM_BYTES = 160 * 1024 * 1024
"""The payloads of an answer are at most 8 MiB, but for one event that is larger; base64 makes them a third longer."""


class Failure(NamedTuple):
    error: str
    dead: bool
    """No attempt will succeed."""


class Claims:
    def __init__(self, http: HttpClient, subscription: str | None) -> None:
        self._http = http
        self._subscription = {} if subscription is None else {"subscription": subscription}

    def claim(self, limit: int, lease_s: int, wait_s: int, cancel: CancelToken) -> list[ClaimedEvent]:
        body = self._body({"limit": limit, "lease_s": lease_s, "wait_s": wait_s})
        answer = self._http.post(
            "/v1/inbox/claims", body, cancel, extra_s=wait_s, max_answer_bytes=_MAX_CLAIM_BYTES
        )
        return cast("list[ClaimedEvent]", result_of(answer)["events"])

    # Each of these is false if the lease was lost.

    def ack(self, event: ClaimedEvent, cancel: CancelToken) -> bool:
        return self._settle("ack", event, {}, cancel)

    def extend(self, event: ClaimedEvent, lease_s: int, cancel: CancelToken) -> bool:
        return self._settle("extend", event, {"lease_s": lease_s}, cancel)

    def release(self, event: ClaimedEvent, failure: Failure | None, cancel: CancelToken) -> bool:
        """Without a failure it is given back at once, as if it had not been tried."""
        more = {"delay_s": 0} if failure is None else failure._asdict()
        return self._settle("release", event, more, cancel)

    def _settle(self, call: str, event: ClaimedEvent, more: dict[str, Any], cancel: CancelToken) -> bool:
        # As a list: then a lost lease is an outcome, not an error.
        body = self._body({"events": [{"id": event["id"], "lease_id": event["lease_id"]}], **more})
        events = result_of(self._http.post(f"/v1/inbox/claims/{call}", body, cancel))["events"]
        return bool(events) and events[0].get("ok") is True

    def _body(self, command: dict[str, Any]) -> bytes:
        return json.dumps({**command, **self._subscription}).encode()
