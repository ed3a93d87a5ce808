"""What an answer of the service means: stored, retry, wait for a fix, or refused. The same rules hold for all sender kits
(docs/sending/guide.md)."""

from __future__ import annotations

import email.utils
import json
import re
import time
from collections.abc import Mapping
from typing import Any, NamedTuple, cast
from urllib.parse import urlsplit

from .errors import FieldProblem, Refused, Unavailable
from .events import Receipt

MAX_RETRY_AFTER_S = 3600.0
"""However long Retry-After asks for."""


class Answer(NamedTuple):
    status: int
    headers: Mapping[str, str]
    """By lower-case names."""
    text: str


def receipt_of(answer: Answer) -> Receipt:
    """For an answer to a message. Only the service's own receipt counts as stored; raises for any other."""
    receipt = _parse_object(answer.text)
    if answer.status == 200 and receipt.get("ok") is True and type(receipt.get("id")) is int:
        return cast(Receipt, receipt)
    raise error_of(answer)


def result_of(answer: Answer) -> dict[str, Any]:
    """The JSON of a 200 answer of the service; raises for any other."""
    body = _parse_object(answer.text)
    if answer.status == 200 and body.get("ok") is True:
        return body
    raise error_of(answer)


def error_of(answer: Answer) -> Refused | Unavailable:
    status = answer.status
    body = _parse_object(answer.text)
    given_code, given_message = body.get("error"), body.get("message")
    code = given_code if isinstance(given_code, str) else f"status {status}"
    message = given_message if isinstance(given_message, str) else _explained(answer, code)
    if status < 300:
        return Unavailable(status, "no_receipt", _NOT_THE_SERVICE)
    if 300 <= status < 400:
        return Unavailable(status, "redirect", _redirected(answer), needs_fix=True)
    if status in (401, 403):
        return Unavailable(status, code, message, needs_fix=True)
    if status in (408, 429) or status >= 500:
        return Unavailable(status, code, message, retry_after=_retry_after(answer))
    return Refused(status, code, message, _fields_of(body), answer.headers.get("x-request-id"))


_NOT_THE_SERVICE = "This is not an answer of Intray. Check the URL, and what stands between."


def _explained(answer: Answer, code: str) -> str:
    """For a 403, whose sentence is in WWW-Authenticate, and for answers of something in between."""
    if code != "forbidden_scope":
        return _NOT_THE_SERVICE
    found = re.search(r'error_description="([^"]*)"', answer.headers.get("www-authenticate", ""))
    if found:
        return found[1]
    return "The scope of this token does not allow this. Use a token with another scope."


def _redirected(answer: Answer) -> str:
    try:
        target = urlsplit(answer.headers.get("location", ""))
        to = f" to {target.scheme}://{target.hostname}" if target.hostname else ""
    except ValueError:
        to = ""
    return (
        f"The address answers with a redirect{to}, which is not followed with a token. "
        "Set the URL of the service itself."
    )


def _retry_after(answer: Answer) -> float | None:
    """Seconds or a date; capped."""
    text = answer.headers.get("retry-after", "").strip()
    if re.fullmatch(r"[0-9]{1,15}", text):
        wanted = float(text)
    else:
        try:
            wanted = email.utils.parsedate_to_datetime(text).timestamp() - time.time()
        except (TypeError, ValueError, OverflowError):
            return None
    return min(MAX_RETRY_AFTER_S, max(0.0, wanted))


def _fields_of(body: dict[str, Any]) -> tuple[FieldProblem, ...]:
    fields = body.get("fields")
    found = []
    for field in fields if isinstance(fields, list) else []:
        path, message = (field.get("path"), field.get("message")) if isinstance(field, dict) else (None, None)
        if isinstance(path, str) and isinstance(message, str):
            found.append(FieldProblem(path, message))
    return tuple(found)


def _parse_object(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}
