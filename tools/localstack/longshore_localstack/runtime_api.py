"""The Lambda Runtime API for one function process, on a loopback port of its own."""

import queue
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Invocation:
    """One call of a function and, once it is done, its answer."""

    def __init__(self, payload, limit):
        self.id = payload["invoke-id"]
        self.arn = payload["invoked-function-arn"]
        self.trace = payload.get("trace-id") or ""
        body = payload["payload"]
        self.body = body.encode() if isinstance(body, str) else body
        self.begun = time.time()
        self.deadline = int((self.begun + limit) * 1000)
        self.done = threading.Event()
        self.answer = b""
        self.failed = False


class RuntimeAPI:
    def __init__(self):
        self.ready = threading.Event()  # the process has asked for work, or given up
        self.init_error = None
        self._waiting = queue.Queue()
        self._running = {}
        self._server = None

    @property
    def address(self):
        return f"127.0.0.1:{self._server.server_address[1]}"

    def start(self):
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def stop(self):
        self._waiting.put(None)
        self._server.shutdown()
        self._server.server_close()

    def put(self, invocation):
        self._running[invocation.id] = invocation
        self._waiting.put(invocation)

    def forget(self):
        """Drops what a process that is gone was to do."""
        self._running.clear()
        while not self._waiting.empty():
            self._waiting.get_nowait()

    def next(self):
        self.ready.set()
        return self._waiting.get()

    def again(self, invocation):
        self._waiting.put(invocation)

    def answered(self, id, body, failed):
        invocation = self._running.pop(id, None)
        if invocation is not None:
            invocation.answer, invocation.failed = body, failed
            invocation.done.set()

    def given_up(self, why):
        self.init_error = why
        self.ready.set()


def _handler(api):
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        # Answers are two small writes; with Nagle's algorithm the second waits 40 ms.
        disable_nagle_algorithm = True

        def log_message(self, *args):
            pass

        def do_GET(self):
            if not self.path.endswith("/runtime/invocation/next"):
                return self._answer(404)
            invocation = api.next()
            if invocation is None:
                return self._answer(500)
            try:
                self._answer(200, invocation.body, {
                    "Lambda-Runtime-Aws-Request-Id": invocation.id,
                    "Lambda-Runtime-Invoked-Function-Arn": invocation.arn,
                    "Lambda-Runtime-Deadline-Ms": str(invocation.deadline),
                    "Lambda-Runtime-Trace-Id": invocation.trace,
                    "Content-Type": "application/json",
                })
            except OSError:  # the process that asked is gone; the next one gets it
                api.again(invocation)

        def do_POST(self):
            body = self._body()
            if self.path.endswith("/init/error"):
                api.given_up(body)
            else:
                id, kind = self.path.strip("/").split("/")[-2:]
                api.answered(id, body, kind == "error")
            self._answer(202, b'{"status":"OK"}')

        def _body(self):
            if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
                return self.rfile.read(int(self.headers.get("Content-Length") or 0))
            body = b""
            while size := int(self.rfile.readline().split(b";")[0], 16):
                body += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
            return body

        def _answer(self, code, body=b"", headers={}):
            self.send_response(code)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    return Handler
