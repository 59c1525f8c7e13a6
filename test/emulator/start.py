# Starts ministack; lifeline.py comes before it.

import decimal
import socketserver
import sys

# The runtime API answers functions in two small writes; with Nagle's algorithm on, the second
# waits 40 ms for an acknowledgement on every invocation.
socketserver.StreamRequestHandler.disable_nagle_algorithm = True

# DynamoDB numbers have 38 digits, Python's default context has 28. The default context is what
# threads that start later copy; this thread already has its own.
decimal.DefaultContext.prec = 38
decimal.setcontext(decimal.Context(prec=38))

# IAM has no actions of SQS's batches: whoever may send a message may send ten. With AUTH the
# emulator asks for sqs:SendMessageBatch, which no policy on AWS can name.
from ministack.core import iam_actions  # noqa: E402

_action = iam_actions.extract_iam_action


def _without_batches(*args, **kwargs):
    action = _action(*args, **kwargs)
    if isinstance(action, str) and action.startswith("sqs:") and action.endswith("Batch"):
        return action[: -len("Batch")]
    return action


iam_actions.extract_iam_action = _without_batches

from ministack.app import main  # noqa: E402  (the settings above must come first)

sys.argv = sys.argv[:1]  # main reads the arguments as its own
main()
