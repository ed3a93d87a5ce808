"""A bot: takes the webhooks of a chat vendor (here: Telegram) and keeps each message in an outbox until Intray has it. Then it is
answered: so the vendor sends again what the bot did not keep, and Intray stores it once.

Environment: INBOX_URL, INBOX_TOKEN, BOT_SECRET (the secret_token of Telegram's setWebhook), BOT_OUTBOX [bot-outbox.db], BOT_PORT [8000],
BOT_NAME [telegram]: begins the references. Bots that send for one company need different names: Telegram counts each bot's chats on its own.
Run: PYTHONPATH=../../python python3 bot.py"""

import hmac
import json
import os
import signal
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from intray import Intray

MAX_BODY_BYTES = 1_000_000


def message_of(update, bot):
    """The vendor's id becomes source_ref, the chat channel_ref; the rest goes along. None for what is no message."""
    message = update.get("message")
    if not isinstance(message, dict):
        return None
    sender, chat = message.get("from") or {}, message["chat"]
    name = " ".join(filter(None, [sender.get("first_name"), sender.get("last_name")]))
    return {
        # A message's id counts within its chat.
        "source_ref": f"{bot}:{chat['id']}:{message['message_id']}",
        "channel_ref": f"{bot}:{chat['id']}",
        "contact": {"name": name},
        "message": {"type": "text", "text": message.get("text") or message.get("caption", "")},
        "meta": {"update": update},
    }


def server_of(intray, secret, bot, port):
    class Webhook(BaseHTTPRequestHandler):
        timeout = 15

        def do_POST(self):
            self.send_response(self.receive())
            self.send_header("Content-Length", "0")
            self.end_headers()

        def receive(self):
            given = self.headers.get("X-Telegram-Bot-Api-Secret-Token", "")
            if not hmac.compare_digest(given.encode(), secret.encode()):
                return 401
            length = int(self.headers.get("Content-Length") or 0)
            if length > MAX_BODY_BYTES:
                return 413
            try:
                message = message_of(json.loads(self.rfile.read(length)), bot)
            except (ValueError, KeyError, AttributeError, TypeError):
                return 400
            if message:
                # On disk when this returns. If it raises, there is no answer, and the vendor tries again.
                intray.send(message)
            return 200

        def log_message(self, *args):
            pass

    return ThreadingHTTPServer(("127.0.0.1", port), Webhook)


def main():
    outbox = os.environ.get("BOT_OUTBOX", "bot-outbox.db")
    secret, bot = os.environ["BOT_SECRET"], os.environ.get("BOT_NAME", "telegram")
    if not secret:
        raise SystemExit("Set BOT_SECRET.")
    with Intray(os.environ["INBOX_URL"], os.environ["INBOX_TOKEN"], outbox=outbox) as intray:
        server = server_of(intray, secret, bot, int(os.environ.get("BOT_PORT", "8000")))
        # serve_forever() waits for the thread that ends it.
        signal.signal(signal.SIGTERM, lambda *_: threading.Thread(target=server.shutdown).start())
        print(f"listening on http://127.0.0.1:{server.server_address[1]}", flush=True)
        server.serve_forever()
        server.server_close()


if __name__ == "__main__":
    main()
