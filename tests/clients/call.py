"""One gRPC call without a stub: `call.py TARGET PATH BYTES` sends that many bytes, or `-` the bytes on stdin.

Prints the status, the kinds of its details and the answer as JSON.
"""

import json
import sys

import grpc
from google.rpc.error_details_pb2 import RetryInfo
from google.rpc.status_pb2 import Status


def details_of(error):
    for key, value in error.trailing_metadata() or ():
        if key == "grpc-status-details-bin":
            return Status.FromString(value)
    return Status()


def told(error):
    status = details_of(error)
    retry = RetryInfo()
    delays = [retry.retry_delay.ToMilliseconds() for any in status.details if any.Unpack(retry)]
    return {
        "code": error.code().name,
        "message": error.details(),
        "status": {"code": status.code, "message": status.message},
        "details": [any.type_url for any in status.details],
        "retry_ms": delays[0] if delays else None,
    }


def main(target, path, size):
    message = sys.stdin.buffer.read() if size == "-" else b"\0" * int(size)
    unlimited = [("grpc.max_send_message_length", -1)]
    with grpc.insecure_channel(target, options=unlimited) as channel:
        call = channel.unary_unary(path, request_serializer=None, response_deserializer=None)
        try:
            print(json.dumps({"code": "OK", "answer": call(message, timeout=60).hex()}))
        except grpc.RpcError as error:
            print(json.dumps(told(error)))


main(*sys.argv[1:])
