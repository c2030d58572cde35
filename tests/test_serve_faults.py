"""ltc serve with plugins that fail, throw, hang and lose their device: only the request is lost, and /v2/health says what is wrong."""

import concurrent.futures
import http.client
import json
import signal
import time
from pathlib import Path

import pytest
import torch

import ltc
from serve_client import ask, infer, metric, request_of, serving, wait_until

PLUGINS = Path(ltc.__file__).parents[2] / "tests" / "plugins"
pytestmark = pytest.mark.skipif(not PLUGINS.is_dir(), reason="the plugins of the core's own tests are not built")
X = torch.tensor([[1.0, -2.0]])
INFER = "/v2/models/net/infer"


@pytest.fixture(scope="module")
def archive(tmp_path_factory):
    path = tmp_path_factory.mktemp("serve") / "net.ltc"
    ltc.export(lambda x: -x, (X,)).save(path)
    return path


def with_plugin(plugin, archive, *options):
    return serving(archive, *options, backend=str(PLUGINS / f"libltc_{plugin}.so"))


def error_of(port, x=X, **parameters):
    status, _, body = ask(port, INFER, request_of(x, parameters=parameters))
    return status, json.loads(body)["error"]


def ends(port):
    return {end: metric(port, f'ltc_serve_requests_total{{model="net",end="{end}"}}') for end in ("good", "failed", "expired", "cancelled")}


def health(port):
    return [ask(port, f"/v2/health/{kind}")[0] for kind in ("live", "ready")]


def end_of(server):
    """The exit code after SIGTERM, and the seconds until then."""
    begin = time.monotonic()
    server.send_signal(signal.SIGTERM)
    return server.wait(30), time.monotonic() - begin


def test_every_second_call_fails(archive):
    def attempt(number):
        x = X + number
        status, _, body = ask(server.port, INFER, request_of(x))
        if status == 200:
            assert json.loads(body)["outputs"][0]["data"] == (-x).flatten().tolist()
        else:
            assert "every second run fails" in json.loads(body)["error"]
        return status

    with with_plugin("test_fails", archive) as server:
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            statuses = list(pool.map(attempt, range(100)))
        assert statuses.count(200) == statuses.count(500) == 50
        assert ends(server.port) == {"good": 50, "failed": 50, "expired": 0, "cancelled": 0}
        assert health(server.port) == [200, 200]
        assert end_of(server)[0] == 0


def test_a_plugin_throws(archive):
    with with_plugin("test_throws_late", archive) as server:
        for _ in range(3):
            status, error = error_of(server.port)
            assert status == 500 and "the plugin threw from execute: no luck today" in error
        assert error_of(server.port, torch.ones(3))[0] == 400
        assert ends(server.port)["failed"] == 3
        assert health(server.port) == [200, 200]
        assert end_of(server)[0] == 0


def test_a_device_is_lost(archive):
    with with_plugin("test_lost", archive) as server:
        torch.testing.assert_close([infer(server.port, X) for _ in range(5)], [-X] * 5)  # lost in the third, and opened again
        assert ends(server.port) == {"good": 5, "failed": 0, "expired": 0, "cancelled": 0}
        assert health(server.port) == [200, 200]
        assert end_of(server)[0] == 0


@pytest.mark.parametrize("waits", [True, False])  # whether the client of the call that hangs is still there at the end
@pytest.mark.parametrize("plugin", ["test_hangs", "test_never"])  # in execute, and with an event that is never over
def test_a_call_hangs(archive, plugin, waits):
    with with_plugin(plugin, archive, "--run-limit-s", "1", "--drain-s", "1") as server:
        hanging = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
        hanging.request("POST", INFER, request_of(X))
        wait_until(lambda: metric(server.port, 'ltc_serve_queue_seconds_count{model="net"}') == 1)
        assert health(server.port) == [200, 200]
        status, error = error_of(server.port, timeout=100_000)
        assert status == 504 and "the deadline passed while the request waited" in error
        assert ends(server.port) == {"good": 0, "failed": 0, "expired": 1, "cancelled": 0}
        wait_until(lambda: health(server.port) == [503, 503])
        assert ask(server.port, "/v2/models/net")[0] == 200
        if not waits:
            hanging.close()
        code, seconds = end_of(server)
        assert code == 1 and seconds < 5
        if waits:
            with pytest.raises((http.client.RemoteDisconnected, ConnectionResetError)):
                hanging.getresponse()
            hanging.close()


@pytest.mark.parametrize("plugin", ["test_hangs", "test_never"])
def test_a_prompt_hangs(tmp_path, plugin):
    def prefill(tokens, length):
        return -length

    def decode(token, position):
        return -token

    exported = ltc.export(prefill, (torch.tensor([[1, 2]]), torch.tensor([2])))
    exported.add(decode, (torch.tensor([1]), torch.tensor([2])))
    exported.save(tmp_path / "text.ltc")
    with with_plugin(plugin, tmp_path / "text.ltc", "--run-limit-s", "1", "--drain-s", "1", "--texts", "1") as server:
        hanging = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
        hanging.request("POST", "/v2/models/text/generate_stream", json.dumps({"tokens": [5, 6]}))
        wait_until(lambda: metric(server.port, 'ltc_serve_running_texts{model="text"}') == 1)
        waiting = json.dumps({"tokens": [7, 8], "parameters": {"timeout": 100_000}})
        status, _, body = ask(server.port, "/v2/models/text/generate", waiting)
        assert status == 504 and "the deadline passed before the end of the text" in json.loads(body)["error"]
        wait_until(lambda: health(server.port) == [503, 503])
        code, seconds = end_of(server)
        assert code == 1 and seconds < 5
        with pytest.raises((http.client.RemoteDisconnected, ConnectionResetError)):
            hanging.getresponse()
        hanging.close()
