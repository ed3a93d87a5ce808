"""The client of Intray: sends messages so that none is lost while the service is away, processes events, follows them."""

from .client import Intray, RefusedMessage, Sent
from .errors import FieldProblem, IntrayError, LeaseLost, Refused, Unavailable, Unrecoverable
from .events import ClaimedEvent, FollowedEvent, Receipt
from .outbox import OutboxCounts
from .worker import Handler, WorkContext

__all__ = [
    "ClaimedEvent",
    "FieldProblem",
    "FollowedEvent",
    "Handler",
    "Intray",
    "IntrayError",
    "LeaseLost",
    "OutboxCounts",
    "Receipt",
    "Refused",
    "RefusedMessage",
    "Sent",
    "Unavailable",
    "Unrecoverable",
    "WorkContext",
]
