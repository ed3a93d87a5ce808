"""A sender in a process of its own, to be killed. Prints each message that send() accepted: its source_ref, then its channel_ref.
Arguments: address, token, outbox (or `memory`: a queue in memory, the control), name, hours the clock is ahead, what to do."""

import os
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../../kits/python"))

from intray import Intray  # noqa: E402

url, token, outbox, name, hours, task = sys.argv[1:7]
AT_ONCE = 4
"""Messages that wait to be accepted at once."""

ahead_ms = int(hours) * 3_600_000
intray = Intray(
    url,
    token,
    outbox="none" if outbox == "memory" else outbox,
    now=lambda: time.time_ns() // 1_000_000 + ahead_ms,
    on_problem=lambda error: print(error, file=sys.stderr),
)

queue = []
# Each byte of stdin allows one more message.
allowed = threading.Semaphore(0)


def send_for_ever(lane):
    """Each thread has a channel of its own: the order of its messages is that of the calls."""
    n = lane
    while True:
        allowed.acquire()
        n += AT_ONCE
        channel = None if n % 3 == 0 else f"channel-{lane}"
        message = {"source_ref": f"{name}:{n}", "message": {"text": f"number {n}"}}
        if channel:
            message["channel_ref"] = channel
        if outbox == "memory":
            queue.append(message)
        else:
            intray.send(message)
        # Whole, and before anything else of this thread happens.
        os.write(1, f"{name}:{n} {channel or '-'}\n".encode())


if task == "send":
    for lane in range(AT_ONCE):
        threading.Thread(target=send_for_ever, args=(lane,), daemon=True).start()
    while permits := os.read(0, 65_536):
        allowed.release(len(permits))
else:
    left = intray.flush()
    while left.waiting > 0:
        time.sleep(0.02)
        left = intray.flush()
    intray.close()
    os.write(1, f"left {left.waiting} {left.refused}\n".encode())
