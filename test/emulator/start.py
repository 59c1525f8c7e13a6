"""Starts ministack in this process, for the Go package beside this file.

Arguments: DATA-DIR, then either "detached", or "lifeline" with "keep" or "remove".
With a lifeline the emulator lives as long as somebody holds the other end of its standard
input: when a test binary is gone, however it went, so are the emulator, the functions it
runs (they share its process group) and, with "remove", its data folder.
"""

import decimal
import os
import shutil
import signal
import socketserver
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

# The runtime API answers functions in two small writes; with Nagle's algorithm on, the second
# waits 40 ms for an acknowledgement on every invocation.
socketserver.StreamRequestHandler.disable_nagle_algorithm = True

# DynamoDB numbers have 38 digits, Python's default context has 28. The default context is what
# threads that start later copy; this thread already has its own.
decimal.DefaultContext.prec = 38
decimal.setcontext(decimal.Context(prec=38))

from ministack.app import main  # noqa: E402  (the settings above must come first)

sys.argv = sys.argv[:1]  # main reads the arguments as its own
main()
