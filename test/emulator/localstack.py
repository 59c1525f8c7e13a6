"""Starts LocalStack's open-source runtime in this process, for the Go package beside this file.

Arguments: as start.py's. Every listening socket is bound to loopback, whatever LocalStack's own
setting makes of it.
"""

import os
import shutil
import signal
import socket
import sys
import threading

data_dir, mode = sys.argv[1:3]
remove_data = sys.argv[3:] == ["remove"]


def follow_lifeline():
    while sys.stdin.buffer.read(4096):
        pass
    if remove_data:
        shutil.rmtree(data_dir, ignore_errors=True)
    os.killpg(os.getpgrp(), signal.SIGKILL)


if mode == "lifeline":
    threading.Thread(target=follow_lifeline, daemon=True).start()

bind = socket.socket.bind


def bind_loopback(self, address):
    if self.family == socket.AF_INET and address[0] in ("", "0.0.0.0"):
        address = ("127.0.0.1", address[1])
    return bind(self, address)


socket.socket.bind = bind_loopback

from localstack.runtime.main import main  # noqa: E402  (the binding must come first)

sys.argv = sys.argv[:1]  # main reads the arguments as its own
main()
