# Starts LocalStack's open-source runtime; lifeline.py comes before it. Every listening socket is
# bound to loopback, whatever LocalStack's own setting makes of it.

import socket
import sys

bind = socket.socket.bind


def bind_loopback(self, address):
    if self.family == socket.AF_INET and address[0] in ("", "0.0.0.0"):
        address = ("127.0.0.1", address[1])
    return bind(self, address)


socket.socket.bind = bind_loopback

from localstack.runtime.main import main  # noqa: E402  (the binding must come first)

sys.argv = sys.argv[:1]  # main reads the arguments as its own
main()
