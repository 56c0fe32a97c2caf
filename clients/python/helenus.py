"""Operation ids for Cassandra's Python driver: a write that is sent again takes effect once.

    import helenus

    add = session.prepare("UPDATE plays SET n = n + 1 WHERE song = ?")
    helenus.execute(session, add, ["Blue in Green"])

The id travels in the custom payload, which the driver sends with every attempt of a request. So its
own retries, and speculative execution, are safe for statements that are not idempotent by
themselves: they are marked idempotent, and a node that knows the id answers without doing it again.

An execution that failed may be tried again by the program, with the same id, for as long as nodes
remember it (operation_window_ms, ten minutes by default):

    operation = helenus.operation_id()
    while True:
        try:
            helenus.execute(session, add, ["Blue in Green"], operation=operation)
            break
        except (OperationTimedOut, NoHostAvailable, WriteTimeout, Unavailable):
            time.sleep(0.1)
"""

import copy
import os
import time

__all__ = ["operation_id", "execute", "execute_async", "Retries"]

PAYLOAD_KEY = "helenus-op"


def operation_id():
    """A new name for an operation: the 16 bytes of a UUID of version 7."""
    tail = bytearray(os.urandom(10))
    tail[0] = 0x70 | tail[0] & 0x0F
    tail[2] = 0x80 | tail[2] & 0x3F
    return int(time.time() * 1000).to_bytes(6, "big") + bytes(tail)


def execute_async(session, statement, parameters=None, operation=None, **arguments):
    """As session.execute_async, as the operation given or a new one."""
    payload = dict(arguments.pop("custom_payload", None) or {})
    payload[PAYLOAD_KEY] = operation or operation_id()
    return session.execute_async(
        _idempotent(session, statement, parameters),
        None if hasattr(statement, "bind") else parameters,
        custom_payload=payload,
        **arguments,
    )


def execute(session, statement, parameters=None, operation=None, **arguments):
    """As session.execute, as the operation given or a new one."""
    return execute_async(session, statement, parameters, operation, **arguments).result()


def _idempotent(session, statement, parameters):
    from cassandra.query import SimpleStatement

    if isinstance(statement, str):
        return SimpleStatement(statement, is_idempotent=True)
    if hasattr(statement, "bind"):
        statement = statement.bind(parameters or ())
    else:
        statement = copy.copy(statement)
    statement.is_idempotent = True
    return statement


class Retries:
    """A retry policy that sends a statement with an id to the next node when one does not answer.

    cluster = Cluster(..., default_retry_policy=helenus.Retries())

    Statements that are not marked idempotent fail as with the driver's own policy.
    """

    def __init__(self, attempts=5):
        self.attempts = attempts

    def on_read_timeout(self, query, consistency, required, received, data, retry_num):
        return self._next(True, consistency, retry_num)

    def on_write_timeout(self, query, consistency, write_type, required, received, retry_num):
        return self._next(query.is_idempotent, consistency, retry_num)

    def on_unavailable(self, query, consistency, required, alive, retry_num):
        return self._next(True, consistency, retry_num)

    def on_request_error(self, query, consistency, error, retry_num):
        return self._next(query.is_idempotent, consistency, retry_num)

    def _next(self, may, consistency, retry_num):
        from cassandra.policies import RetryPolicy

        if may and retry_num < self.attempts:
            return (RetryPolicy.RETRY_NEXT_HOST, consistency)
        return (RetryPolicy.RETHROW, None)
