"""A page in headless Chromium, over the pipe of its debugging protocol."""

import base64
import fcntl
import json
import os
import shutil
import subprocess

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


class Browser:
    """Opens a file; `folder` is for Chromium's own files. A context manager, which ends Chromium."""

    def __init__(self, path, folder, width=1440, height=900, is_dark=False):
        from_browser, to_browser = os.pipe(), os.pipe()
        command = [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe", f"--user-data-dir={folder}/profile",
                   "about:blank"]  # fmt: skip

        def set_up():  # Chromium reads from 3 and writes to 4
            ends = [fcntl.fcntl(end, fcntl.F_DUPFD, 10) for end in (to_browser[0], from_browser[1])]
            for number, end in enumerate(ends, 3):
                os.dup2(end, number)

        self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, pass_fds=(3, 4), preexec_fn=set_up,
                                         env={**os.environ, "HOME": str(folder)})  # fmt: skip
        for number in (to_browser[0], from_browser[1]):
            os.close(number)
        self._in, self._out = os.fdopen(from_browser[0], "rb"), os.fdopen(to_browser[1], "wb", buffering=0)
        self._number, self._session = 0, None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark" if is_dark else "light"}])
        self.call("Page.enable")
        self.call("Page.navigate", url=path.as_uri())
        while self._message().get("method") != "Page.loadEventFired":
            pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._out.close()
        self._process.terminate()
        self._process.wait(30)
        self._in.close()

    def call(self, method, **arguments):
        self._number += 1
        message = {"id": self._number, "method": method, "params": arguments, **({"sessionId": self._session} if self._session else {})}
        self._out.write(json.dumps(message).encode() + b"\0")
        while True:
            answer = self._message()
            if answer.get("id") == self._number:
                assert "error" not in answer, answer
                return answer["result"]

    def _message(self):
        data = bytearray()
        while (byte := self._in.read(1)) != b"\0":
            assert byte, "Chromium has ended"
            data += byte
        return json.loads(data)

    def run(self, body):
        """The value that the body of an asynchronous function returns."""
        result = self.call("Runtime.evaluate", expression=f"(async () => {{{body}}})()", awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in result, result["exceptionDetails"]
        return result["result"].get("value")

    def screenshot(self, path):
        path.write_bytes(base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"]))
