"""DynamoDB and its streams from moto, in place of the Java program that LocalStack downloads.

moto checks a condition and writes the item without a lock in between, and LocalStack gives it
requests side by side: two conditional writes could both win. One lock over all of DynamoDB makes
each request one step, as it is on AWS.
"""

import threading

from localstack.services.plugins import Service, aws_provider


_lock = threading.RLock()


def _one_at_a_time(handler):
    def locked(*args, **kwargs):
        with _lock:
            return handler(*args, **kwargs)

    return locked


def _from_moto(api):
    from localstack.services.moto import MotoFallbackDispatcher

    def dispatch_table(provider):
        return {operation: _one_at_a_time(handler) for operation, handler in MotoFallbackDispatcher(provider).items()}

    return Service.for_provider(type("Moto", (api,), {})(), dispatch_table_factory=dispatch_table)


@aws_provider(api="dynamodb", name="moto")
def dynamodb():
    from localstack.aws.api.dynamodb import DynamodbApi

    return _from_moto(DynamodbApi)


@aws_provider(api="dynamodbstreams", name="moto")
def dynamodbstreams():
    from localstack.aws.api.dynamodbstreams import DynamodbstreamsApi

    return _from_moto(DynamodbstreamsApi)
