"""Runs a function's `bootstrap` as a process of this machine behind a Runtime API of its own.

LocalStack starts one executor for each execution environment of a function and gives it one
invocation at a time. A process that ends or takes too long is replaced for the next one.
"""

import json
import logging
import os
import signal
import subprocess
import tempfile
import threading
import time

from localstack import config
from localstack.services.lambda_.invocation.lambda_models import InvocationResult
from localstack.services.lambda_.invocation.plugins import RuntimeExecutorPlugin
from localstack.services.lambda_.invocation.runtime_executor import RuntimeExecutor

from .runtime_api import Invocation, RuntimeAPI

LOG = logging.getLogger(__name__)

# How long a process may go on when its environment is taken down.
END_WITHIN = 2


class Plugin(RuntimeExecutorPlugin):
    name = "process"

    def load(self, *args, **kwargs):
        return ProcessExecutor


class ProcessExecutor(RuntimeExecutor):
    def __init__(self, id, function_version):
        super().__init__(id, function_version)
        self.environment = {}
        self.process = None
        self.log = tempfile.TemporaryFile()
        self.api = RuntimeAPI()

    def start(self, env_vars):
        self.environment = {k: str(v) for k, v in env_vars.items() if v is not None}
        self.api.start()
        self._spawn()
        deadline = time.monotonic() + config.LAMBDA_RUNTIME_ENVIRONMENT_TIMEOUT
        while not self.api.ready.wait(0.01):
            if self.process.poll() is not None:
                raise RuntimeError(f"bootstrap ended with {self.process.returncode}: {self.get_logs()[-2000:]}")
            if time.monotonic() > deadline:
                raise RuntimeError("bootstrap has not asked for work in time")
        if self.api.init_error:
            raise RuntimeError(f"bootstrap could not start: {self.api.init_error!r}")

    def stop(self):
        self._end()
        self.api.stop()

    def _spawn(self):
        folder = str(self.function_version.config.code.get_unzipped_code_location())
        bootstrap = os.path.join(folder, "bootstrap")
        os.chmod(bootstrap, 0o755)
        environment = self.environment | {
            "AWS_LAMBDA_RUNTIME_API": self.api.address,
            "LAMBDA_TASK_ROOT": folder,
            "PATH": os.environ["PATH"],
            "TZ": "UTC",
        }
        self.api.ready.clear()
        # The process group stays LocalStack's own: whoever ends that ends this too.
        self.process = subprocess.Popen([bootstrap], cwd=folder, env=environment, stdout=self.log, stderr=subprocess.STDOUT)

    def _end(self):
        if self.process is None or self.process.poll() is not None:
            return
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(END_WITHIN)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def invoke(self, payload):
        limit = self.function_version.config.timeout
        invocation = Invocation(payload, limit)
        mark = self._log_end()
        self.api.put(invocation)
        fault = self._await(invocation, limit)
        took = (time.time() - invocation.begun) * 1000
        lines = self._log_from(mark)
        logs = (
            f"START RequestId: {invocation.id} Version: {self.function_version.id.qualifier}\n{lines}"
            f"END RequestId: {invocation.id}\nREPORT RequestId: {invocation.id}\tDuration: {took:.2f} ms\n"
        )
        if fault is None:
            return InvocationResult(invocation.id, invocation.answer, is_error=invocation.failed, logs=logs)
        self._end()
        self.api.forget()
        self._spawn()
        return InvocationResult(invocation.id, json.dumps(fault).encode(), is_error=True, logs=logs)

    def _await(self, invocation, limit):
        """None once the function has answered, else the error that Lambda would give."""
        while not invocation.done.wait(0.005):
            if self.process.poll() is not None:
                return {
                    "errorType": "Runtime.ExitError",
                    "errorMessage": f"RequestId: {invocation.id} Error: Runtime exited with error: exit status {self.process.returncode}",
                }
            if time.time() - invocation.begun > limit:
                return {
                    "errorType": "Sandbox.Timedout",
                    "errorMessage": f"RequestId: {invocation.id} Error: Task timed out after {limit}.00 seconds",
                }
        return None

    def _log_end(self):
        return self.log.seek(0, os.SEEK_END)

    def _log_from(self, mark):
        self.log.seek(mark)
        text = self.log.read().decode(errors="replace")
        self._log_end()
        return text

    def get_logs(self):
        return self._log_from(0)

    def get_address(self):
        return "127.0.0.1"

    def get_endpoint_from_executor(self):
        return "127.0.0.1"

    def get_runtime_endpoint(self):
        return f"http://127.0.0.1:{config.GATEWAY_LISTEN[0].port}/_localstack_lambda/{self.id}"

    @classmethod
    def prepare_version(cls, function_version):
        if function_version.config.code:
            function_version.config.code.prepare_for_execution()

    @classmethod
    def cleanup_version(cls, function_version):
        pass

    @classmethod
    def validate_environment(cls):
        return True
