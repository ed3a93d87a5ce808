"""The shapes of what the service answers, as in api/openapi.yaml."""

from __future__ import annotations

from typing import Any, Literal, TypedDict


class _Stored(TypedDict):
    ok: Literal[True]
    id: int


class Receipt(_Stored, total=False):
    duplicate: Literal[True]
    conflict: Literal[True]


class _Claimed(TypedDict):
    id: int
    lease_id: str
    lease_expires_at: str
    attempts: int
    conversation_id: int | None
    channel_ref: str | None
    source_ref: str | None
    received_at: str
    scope: str
    key_id: str
    traceparent: str | None
    content_type: str
    size: int
    sha256: str | None


class ClaimedEvent(_Claimed, total=False):
    payload: Any
    payload_base64: str
    payload_missing: Literal["erased", "damaged"]


class Contact(TypedDict):
    name: str | None
    email: str | None


class FollowedEvent(TypedDict):
    id: int
    kind: Literal["event", "revision"]
    revises: int | None
    received_at: str
    source_ref: str | None
    channel_ref: str | None
    conversation_id: int | None
    contact: Contact
    message_type: str | None
    snippet: str | None
    size: int
    sha256: str | None
    erased_at: str | None
    scope: str
    key_id: str
    request_id: str
