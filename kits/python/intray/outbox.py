"""The outbox: messages that wait in a SQLite file until the service has them. Any number of processes may share the file. The
same states and rules hold in every sender kit.

  add ──► waiting ── claim, 200 ──────────► sent      pruned after some days
            ▲  │
            │  └──── claim, another 4xx ──► refused   kept until somebody sends it again
            └──────────── resend ──────────────┘

A claim is a compare-and-set that holds for 120 s; if its process dies, another one takes the row over. A waiting row holds
back the later rows of its channel_ref and no others; a refused row holds back nothing. A row that is not sent is never
deleted, and its bytes never change. Every method returns when the change is on disk. Times are ms since 1970."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

CLAIM_MS = 120_000
_BUSY_S = 10.0
_SCHEMA_VERSION = 1
_SCHEMA = """
CREATE TABLE outbox (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  source_ref TEXT NOT NULL,
  channel_ref TEXT,
  traceparent TEXT,
  body BLOB NOT NULL,
  created_at INTEGER NOT NULL,
  attempts INTEGER NOT NULL DEFAULT 0,
  next_at INTEGER,
  claimed_until INTEGER NOT NULL DEFAULT 0,
  status TEXT NOT NULL DEFAULT 'waiting' CHECK (status IN ('waiting', 'sent', 'refused')),
  last_error TEXT,
  sent_at INTEGER
);
CREATE INDEX outbox_due ON outbox (next_at, id) WHERE status = 'waiting' AND next_at IS NOT NULL;
CREATE INDEX outbox_channel ON outbox (channel_ref, id) WHERE status = 'waiting' AND channel_ref IS NOT NULL;
CREATE INDEX outbox_channel_due ON outbox (channel_ref) WHERE status = 'waiting' AND channel_ref IS NOT NULL AND next_at IS NOT NULL;
CREATE INDEX outbox_waiting ON outbox (id) WHERE status = 'waiting';
CREATE INDEX outbox_refused ON outbox (id) WHERE status = 'refused';
CREATE INDEX outbox_sent ON outbox (sent_at) WHERE status = 'sent';
"""

_ADD = """
INSERT INTO outbox (source_ref, channel_ref, traceparent, body, created_at, next_at)
SELECT :source_ref, :channel_ref, :traceparent, :body, :now,
  CASE WHEN EXISTS (SELECT 1 FROM outbox WHERE status = 'waiting' AND channel_ref = :channel_ref) THEN NULL ELSE :now END"""
# A claimed row is due again when its claim ends: so the first due rows are never those that others hold.
_DUE = """
SELECT id FROM outbox WHERE status = 'waiting' AND next_at IS NOT NULL AND next_at <= :now AND claimed_until <= :now
ORDER BY next_at, id LIMIT :limit"""
_CLAIM = "UPDATE outbox SET claimed_until = :until, next_at = :until, attempts = attempts + 1 WHERE id = :id"
_SENT = """
UPDATE outbox SET status = 'sent', sent_at = :now, claimed_until = 0, next_at = NULL, last_error = NULL
WHERE id = :id AND status <> 'sent'"""
_RETRY = """
UPDATE outbox SET claimed_until = 0, last_error = :error,
  next_at = CASE WHEN EXISTS (
    SELECT 1 FROM outbox earlier WHERE earlier.status = 'waiting' AND earlier.channel_ref = outbox.channel_ref AND earlier.id < outbox.id
  ) THEN NULL ELSE :next_at END
WHERE id = :id AND status = 'waiting' AND claimed_until = :claimed_until"""
_REFUSED = """
UPDATE outbox SET status = 'refused', claimed_until = 0, next_at = NULL, last_error = :error
WHERE id = :id AND status = 'waiting' AND claimed_until = :claimed_until"""
# At most one row of a channel has a time: the one that is claimed or may be. When there is none, the first one gets it.
_WAKE = """
UPDATE outbox SET next_at = :now
WHERE id = (SELECT id FROM outbox WHERE status = 'waiting' AND channel_ref = :channel ORDER BY id LIMIT 1)
  AND NOT EXISTS (SELECT 1 FROM outbox WHERE status = 'waiting' AND channel_ref = :channel AND next_at IS NOT NULL)"""
_RESEND = """
UPDATE outbox SET status = 'waiting', next_at = CASE WHEN channel_ref IS NULL THEN :now END
WHERE id = :id AND status = 'refused'"""
# A row that is sent again comes before the later ones of its channel, unless one of them is under way.
_HOLD_BACK = """
UPDATE outbox SET next_at = NULL
WHERE status = 'waiting' AND channel_ref = :channel AND id > :id AND next_at IS NOT NULL AND claimed_until = 0"""
_CORRECT_TIMES = """
UPDATE outbox SET next_at = :now, claimed_until = 0 WHERE status = 'waiting' AND next_at > :latest"""
_NEXT_AT = "SELECT next_at FROM outbox WHERE status = 'waiting' AND next_at IS NOT NULL ORDER BY next_at LIMIT 1"
_COUNTS = """
SELECT (SELECT count(*) FROM outbox WHERE status = 'waiting'), (SELECT count(*) FROM outbox WHERE status = 'refused'),
  (SELECT created_at FROM outbox WHERE status = 'waiting' ORDER BY id LIMIT 1)"""
_COLUMNS = "id, source_ref, channel_ref, traceparent, body, created_at, attempts, claimed_until, last_error"


class NewMessage(NamedTuple):
    source_ref: str
    channel_ref: str | None
    traceparent: str | None
    body: bytes


class OutboxRow(NamedTuple):
    id: int
    source_ref: str
    channel_ref: str | None
    traceparent: str | None
    body: bytes
    created_at: int
    attempts: int
    """How often it was claimed."""
    claimed_until: int
    last_error: str | None


class OutboxCounts(NamedTuple):
    waiting: int
    refused: int
    oldest_at: int | None
    """When the oldest waiting message was given to send(), in ms since 1970."""


class Outbox:
    def __init__(self, path: str) -> None:
        self._lock = threading.Lock()
        # Transactions are begun and ended here, and the lock lets one thread in at a time.
        self._db = sqlite3.connect(path, timeout=_BUSY_S, isolation_level=None, check_same_thread=False)
        self._db.execute("PRAGMA journal_mode = WAL")
        self._db.execute("PRAGMA synchronous = FULL")
        with self._transaction():
            self._migrate(path)

    def _migrate(self, path: str) -> None:
        (version,) = self._db.execute("PRAGMA user_version").fetchone()
        if version > _SCHEMA_VERSION:
            raise RuntimeError(f"The outbox {path} was made by a newer client. Update the package intray.")
        if version < _SCHEMA_VERSION:
            for statement in _SCHEMA.split(";\n"):
                self._db.execute(statement)
            self._db.execute(f"PRAGMA user_version = {_SCHEMA_VERSION}")

    def add(self, message: NewMessage, now: int) -> None:
        with self._transaction():
            self._db.execute(_ADD, {**message._asdict(), "now": now})

    def claim(self, limit: int, now: int) -> list[OutboxRow]:
        """At most `limit` rows, at most one of each channel, longest due first. They are the caller's for CLAIM_MS."""
        # Most looks find nothing, and need no transaction.
        next_at = self.next_at()
        if next_at is None or next_at > now:
            return []
        with self._transaction():
            ids = [id for (id,) in self._db.execute(_DUE, {"now": now, "limit": limit}).fetchall()]
            for id in ids:
                self._db.execute(_CLAIM, {"id": id, "until": now + CLAIM_MS})
            return [self._row(id) for id in sorted(ids)]

    def sent(self, row: OutboxRow, now: int) -> None:
        with self._transaction():
            self._db.execute(_SENT, {"id": row.id, "now": now})
            self._wake(row.channel_ref, now)

    def retry(self, row: OutboxRow, next_at: int, error: str, now: int) -> None:
        """Changes nothing if the claim is another one's meanwhile; `refused` neither."""
        with self._transaction():
            values = {"id": row.id, "next_at": next_at, "error": error, "claimed_until": row.claimed_until}
            self._db.execute(_RETRY, values)
            self._wake(row.channel_ref, now)

    def refused(self, row: OutboxRow, error: str, now: int) -> None:
        with self._transaction():
            self._db.execute(_REFUSED, {"id": row.id, "error": error, "claimed_until": row.claimed_until})
            self._wake(row.channel_ref, now)

    def resend(self, id: int, now: int) -> bool:
        """Makes a refused row wait again. False if it is not there."""
        with self._transaction():
            if self._db.execute(_RESEND, {"id": id, "now": now}).rowcount == 0:
                return False
            channel = self._row(id).channel_ref
            if channel is not None:
                self._db.execute(_HOLD_BACK, {"id": id, "channel": channel})
                self._wake(channel, now)
            return True

    def correct_times(self, latest: int, now: int) -> None:
        """Makes rows due now whose time is after `latest`: it is of a clock that has been set back."""
        with self._transaction():
            self._db.execute(_CORRECT_TIMES, {"latest": latest, "now": now})

    def next_at(self) -> int | None:
        """When the next row may be claimed; None if none waits."""
        with self._lock:
            row = self._db.execute(_NEXT_AT).fetchone()
        return None if row is None else int(row[0])

    def counts(self) -> OutboxCounts:
        with self._lock:
            return OutboxCounts(*self._db.execute(_COUNTS).fetchone())

    def list_refused(self, after_id: int, limit: int) -> list[OutboxRow]:
        """Refused rows after an id, oldest first."""
        sql = f"SELECT {_COLUMNS} FROM outbox WHERE status = 'refused' AND id > ? ORDER BY id LIMIT ?"
        with self._lock:
            return [OutboxRow(*row) for row in self._db.execute(sql, (after_id, limit)).fetchall()]

    def prune(self, sent_before: int) -> None:
        """Deletes sent rows that were sent before."""
        with self._transaction():
            self._db.execute("DELETE FROM outbox WHERE status = 'sent' AND sent_at < ?", (sent_before,))

    def close(self) -> None:
        with self._lock:
            self._db.close()

    def _row(self, id: int) -> OutboxRow:
        return OutboxRow(*self._db.execute(f"SELECT {_COLUMNS} FROM outbox WHERE id = ?", (id,)).fetchone())

    def _wake(self, channel: str | None, now: int) -> None:
        if channel is not None:
            self._db.execute(_WAKE, {"channel": channel, "now": now})

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        with self._lock:
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._db.execute("COMMIT")
            except BaseException:
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")
                raise
