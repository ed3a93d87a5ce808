"""The errors of the client. Whatever it raises or reports about the service is one of the first three; none of them holds the
token. A handler may raise the last."""

from __future__ import annotations

from typing import NamedTuple


class FieldProblem(NamedTuple):
    path: str
    """A JSON Pointer, such as /source_ref."""
    message: str


class IntrayError(Exception):
    """What the errors about the service have in common."""


class Refused(IntrayError):
    """The service refused the request for what it is. The same request will be refused again."""

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        fields: tuple[FieldProblem, ...] = (),
        request_id: str | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        """A code of docs/sending/errors.md, or `status 404` where the answer has none."""
        self.message = message
        self.fields = fields
        self.request_id = request_id


class Unavailable(IntrayError):
    """The service cannot take the request now. The same request may succeed later."""

    def __init__(
        self,
        status: int | None,
        code: str,
        message: str,
        retry_after: float | None = None,
        needs_fix: bool = False,
    ) -> None:
        super().__init__(message)
        self.status = status
        """None if there was no answer."""
        self.code = code
        self.message = message
        self.retry_after = retry_after
        """Seconds that Retry-After asks for."""
        self.needs_fix = needs_fix
        """True if somebody has to change the token or the address first."""


class LeaseLost(IntrayError):
    """A handler's event belongs to somebody else by now: what the handler did does not count."""

    def __init__(self, event_id: int) -> None:
        super().__init__(f"The lease of event {event_id} was lost: another processor may have the event.")
        self.event_id = event_id


class Unrecoverable(Exception):
    """Raised by a handler: no attempt will succeed. The event is dead at once, with this message as its error."""
