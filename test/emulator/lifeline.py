"""The beginning of what starts an emulator in this process, for the Go package beside this file.

Arguments: DATA-DIR, then either "detached", or "lifeline" with "keep" or "remove".
With a lifeline the emulator lives as long as somebody holds the other end of its standard
input: when a test binary is gone, however it went, so are the emulator, the functions it
runs (they share its process group) and, with "remove", its data folder.
"""

import os
import shutil
import signal
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
