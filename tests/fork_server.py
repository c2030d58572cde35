"""Programs run in processes forked from one that has imported PyTorch, since that import takes seconds.

A program sees what it would see as ``python -c SOURCE``: its own environment, streams, ``__main__`` and end of the process. The first
import of PyTorch or of ltc loads the device where ``LTC_BACKEND`` asks for that, as PyTorch itself does when it is imported.
"""

import atexit
import builtins
import functools
import gc
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

TIMEOUT = 300  # seconds, of a program


class _Server:
    """The process that forks, and the socket to it."""

    def __init__(self):
        self.socket, theirs = socket.socketpair()
        command = [sys.executable, "-c", f"import fork_server; exec(fork_server.next_program({theirs.fileno()}))"]
        environment = {key: value for key, value in os.environ.items() if not key.startswith("LTC_")}
        path = os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
        environment.update(TORCH_DEVICE_BACKEND_AUTOLOAD="0", PYTHONPATH=path)
        self.process = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, pass_fds=[theirs.fileno()])
        theirs.close()
        self.messages = self.socket.makefile("rw")
        atexit.register(self.socket.shutdown, socket.SHUT_RDWR)

    def ask(self, **request):
        print(json.dumps(request), file=self.messages, flush=True)
        return int(self.messages.readline())


@functools.cache
def _server():
    return _Server()


class Program:
    """A program that runs, with the part of ``subprocess.Popen`` that tests use: pipes in text mode."""

    def __init__(self, source, environment):
        self.args, self.returncode = [sys.executable, "-c", source], None
        self._streams = [tempfile.TemporaryFile("w+") for _ in range(2)]
        paths = [f"/proc/{os.getpid()}/fd/{stream.fileno()}" for stream in self._streams]
        self.pid = _server().ask(source=source, environment=environment, streams=paths, folder=os.getcwd())
        self._end = os.pidfd_open(self.pid)

    def communicate(self, timeout):
        """Its output and its errors, when it has ended. Raises ``TimeoutExpired``."""
        if not select.select([self._end], [], [], timeout)[0]:
            raise subprocess.TimeoutExpired(self.args, timeout)
        self._reap()
        for stream in self._streams:
            stream.seek(0)
        return tuple(stream.read() for stream in self._streams)

    def kill(self):
        if self.returncode is None:
            os.kill(self.pid, signal.SIGKILL)
            self._reap()

    def _reap(self):
        self.returncode = _server().ask(ended=self.pid)
        os.close(self._end)


def suits(environment):
    """Whether nothing differs from this process' environment but variables that are not read when PyTorch is imported."""
    differing = {key for key, _ in environment.items() ^ dict(os.environ).items()}
    return all(key.startswith("LTC_") or key == "ATEN_CPU_CAPABILITY" for key in differing)


def run(source, environment):
    """The CompletedProcess of a program in text mode. Raises ``TimeoutExpired``."""
    program = Program(source, environment)
    try:
        stdout, stderr = program.communicate(TIMEOUT)
    finally:
        program.kill()
    return subprocess.CompletedProcess(program.args, program.returncode, stdout, stderr)


def next_program(descriptor):
    """Forks for each program that the socket asks for, and returns in the child: the program's code. The server itself ends here."""
    import torch
    import torch._dynamo  # the first optimizer of a program imports it, and that takes seconds

    gc.collect()
    gc.freeze()  # else the collections at the end of each child visit all that is imported, and so copy it: half a second
    messages = socket.socket(fileno=descriptor).makefile("rw")
    while line := messages.readline():
        request = json.loads(line)
        if "ended" in request:
            answer = os.waitstatus_to_exitcode(os.waitpid(request["ended"], 0)[1])
        else:
            answer = os.fork()
            if answer == 0:
                messages.close()
                return _become(torch, **request)
        print(answer, file=messages, flush=True)
    os._exit(0)


def _become(torch, source, environment, streams, folder):
    for number, path in enumerate(streams, 1):
        os.dup2(os.open(path, os.O_WRONLY | os.O_APPEND), number)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.path.remove(str(Path(__file__).parent))
    plain_import = builtins.__import__

    def importing(name, *args, **kwargs):
        if name.partition(".")[0] in ("torch", "ltc"):
            builtins.__import__ = plain_import
            if torch._is_device_backend_autoload_enabled():
                torch._import_device_backends()
        return plain_import(name, *args, **kwargs)

    builtins.__import__ = importing
    return compile(source, "<string>", "exec")
