"""Operators shared out to worker processes. A crash or a hang costs one operator: its worker is replaced."""

import json
import queue
import subprocess
import sys
import threading
import time

START_TIMEOUT_S = 300
EXIT_TIMEOUT_S = 30  # of a process that has closed its pipe: a GPU's driver takes seconds


class Worker:
    """One process and its pipes."""

    def __init__(self, command):
        self._command = command
        self._process = None

    def run(self, request, timeout_s):
        """The tallies of one operator, and what went wrong with the process, or None."""
        tallies, at = [], "its start"
        self._start()
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        deadline = Deadline(timeout_s)
        while True:
            answer = self._answer(deadline.left())
            if answer is None:
                return tallies, f"{self._end()} in {at}"
            if "done" in answer:
                return tallies, None
            if "at" in answer:
                at = answer["at"]
            else:
                tallies.append(answer)

    def close(self):
        if self._process:
            self._process.stdin.close()
            self._process.wait()

    def _start(self):
        if self._process:
            return
        self._process = subprocess.Popen(self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)
        self._lines, self._is_closed = queue.Queue(), False
        threading.Thread(target=self._read, args=(self._process.stdout, self._lines), daemon=True).start()
        if self._answer(START_TIMEOUT_S) is None:
            raise RuntimeError(f"a worker of the sweep does not start: {' '.join(self._command)}: {self._end()}")

    @staticmethod
    def _read(pipe, lines):
        for line in pipe:
            lines.put(line)
        lines.put(None)

    def _answer(self, timeout_s):
        """The next answer; None if the process has ended or the time is over."""
        try:
            line = self._lines.get(timeout=timeout_s)
        except queue.Empty:
            return None
        self._is_closed = line is None
        return None if self._is_closed else json.loads(line)

    def _end(self):
        """Ends the process and says how it went."""
        process, self._process = self._process, None
        try:
            code = process.wait(timeout=EXIT_TIMEOUT_S if self._is_closed else 0)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            return "timed out"
        return f"crashed with signal {-code}" if code < 0 else f"exited with status {code}"


class Deadline:
    def __init__(self, seconds):
        self._end = time.monotonic() + seconds

    def left(self):
        return max(self._end - time.monotonic(), 0)


def run_all(requests, shards, timeout_s, command=None):
    """Yields (request, tallies, what went wrong with the process or None) as they come."""
    command = command or [sys.executable, "-m", "sweep.worker"]
    waiting, results = queue.SimpleQueue(), queue.SimpleQueue()
    for request in requests:
        waiting.put(request)

    def serve():
        worker = Worker(command)
        try:
            while True:
                request = waiting.get_nowait()
                results.put((request, *worker.run(request, timeout_s)))
        except queue.Empty:
            worker.close()
        except Exception as error:  # noqa: BLE001  raised again by whoever iterates
            results.put(error)

    for _ in range(min(shards, len(requests))):
        threading.Thread(target=serve, daemon=True).start()
    for _ in requests:
        result = results.get()
        if isinstance(result, Exception):
            raise result
        yield result
