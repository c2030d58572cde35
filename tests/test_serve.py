"""ltc serve: requests over HTTP, of good and of bad clients."""

import concurrent.futures
import contextlib
import http.client
import json
import signal
import socket
import struct
import subprocess
import time

import pytest
import torch

import ltc
from serve_client import PROGRAM, ask, infer, metric, request_of, serving


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(4, 3)

    def forward(self, x):
        return self.linear(x).relu()


@pytest.fixture(scope="module")
def model():
    torch.manual_seed(0)
    return Net().eval()


@pytest.fixture(scope="module")
def archive(model, tmp_path_factory):
    path = tmp_path_factory.mktemp("serve") / "net.ltc"
    on_device = Net().eval()
    on_device.load_state_dict(model.state_dict())
    on_device.to("ltc")
    x, shapes = torch.randn(4, 4), {"x": {0: "batch"}}
    with torch.no_grad():
        exported = ltc.export(on_device, (x,), dynamic_shapes=shapes, state={"net": on_device})
        exported.add(lambda x: on_device(x) - on_device(x).mean(0), (x,), name="centred", dynamic_shapes=shapes)
        exported.add(lambda x: on_device.linear.bias.add_(x.sum()).clone(), (x,), name="shift")
    exported.save(path)
    return path


def test_answers_are_the_models(archive, model):
    with serving(archive) as server:
        assert "net.forward: up to 32 rows of requests in a call" in server.report
        assert "net.centred: requests are not put together: in its sample, " in server.report
        assert "net.shift is not served: it changes the state" in server.report
        x = torch.randn(3, 4)
        torch.testing.assert_close(infer(server.port, x), model(x))
        torch.testing.assert_close(infer(server.port, x, "net.centred"), model(x) - model(x).mean(0))
        status, _, body = ask(server.port, "/v2/models/net")
        assert status == 200
        assert json.loads(body)["inputs"] == [{"name": "x", "datatype": "FP32", "shape": [-1, 4]}]
        assert ask(server.port, "/v2/health/ready")[0] == ask(server.port, "/v2/health/live")[0] == 200


def test_tensors_as_bytes(archive, model):
    x = torch.randn(2, 4)
    data = struct.pack("8f", *x.flatten().tolist())
    header = json.dumps({
        "inputs": [{"name": "x", "datatype": "FP32", "shape": [2, 4], "parameters": {"binary_data_size": len(data)}}],
        "parameters": {"binary_data_output": True},
    }).encode()  # fmt: skip
    with serving(archive) as server:
        headers = {"Inference-Header-Content-Length": str(len(header))}
        status, answered, body = ask(server.port, "/v2/models/net/infer", header + data, headers)
        assert status == 200, body
        size = int(answered["Inference-Header-Content-Length"])
        assert json.loads(body[:size])["outputs"][0]["parameters"] == {"binary_data_size": 24}
        torch.testing.assert_close(torch.tensor(struct.unpack("6f", body[size:])).reshape(2, 3), model(x))


def test_names_with_other_signs(archive, model):
    x = torch.ones(1, 4)
    with serving(f"my net={archive}") as server:
        torch.testing.assert_close(infer(server.port, x, "my%20net"), model(x))
        torch.testing.assert_close(infer(server.port, x, "my%20n%65t.forward"), model(x))
        for name in ("my%2", "my%", "my%zz", "my%20net%00"):
            status, _, body = ask(server.port, f"/v2/models/{name}")
            assert status == 404 and "there is no model my" in json.loads(body)["error"]


def test_encoded_bodies_are_refused(archive):
    x = torch.ones(1, 4)
    with serving(archive) as server:
        for encoding, expected in (("gzip", 400), ("identity", 200)):
            status, _, body = ask(server.port, "/v2/models/net/infer", request_of(x), {"Content-Encoding": encoding})
            assert status == expected
            assert ("Content-Encoding is 'gzip'" in body.decode()) == (expected == 400)


def test_many_clients_at_once(archive, model):
    inputs = [torch.randn(1 + i % 3, 4) for i in range(200)]
    with serving(archive, "--instances", "2", "--delay-us", "20000") as server:
        with concurrent.futures.ThreadPoolExecutor(16) as pool:
            answers = list(pool.map(lambda x: infer(server.port, x), inputs))
        for x, answer in zip(inputs, answers):
            torch.testing.assert_close(answer, model(x))
        assert metric(server.port, 'ltc_serve_requests_total{model="net",end="good"}') == 200
        assert metric(server.port, 'ltc_serve_call_rows_sum{model="net"}') == sum(len(x) for x in inputs)
        assert metric(server.port, 'ltc_serve_call_rows_count{model="net"}') < 200, "no requests were put together"


@pytest.mark.parametrize(
    ("path", "body", "status", "text"),
    [
        ("/v2/models/net/infer", "{", 400, "is no JSON"),
        ("/v2/models/net/infer", request_of(torch.ones(2, 5)), 400, "shape [2,5], and is to be f32[batch,4]"),
        ("/v2/models/other/infer", "{}", 404, "there is no model other, but: net, net.centred, net.forward"),
        ("/v2/models/net/explain", "{}", 404, "there is no /v2/models/net/explain"),
        ("/v2/models/net/infer", None, 400, "takes POST"),
        ("/elsewhere", None, 404, "there is no /elsewhere"),
        ("/v2/models/net/infer", " " * (1 << 20) + "{}", 413, "too large"),
    ],
)
def test_bad_requests(archive, model, path, body, status, text):
    with serving(archive, "--body-limit-mb", "1") as server:
        found, _, answer = ask(server.port, path, body)
        assert found == status
        assert text in json.loads(answer)["error"]
        x = torch.ones(1, 4)
        torch.testing.assert_close(infer(server.port, x), model(x))


def test_bytes_that_are_no_http(archive, model):
    with serving(archive) as server:
        with socket.create_connection(("127.0.0.1", server.port)) as bad:
            bad.sendall(b"\x16\x03\x01\x02\x00 hello\r\n\r\n")
            assert b"400 Bad Request" in bad.recv(4096)
        x = torch.ones(1, 4)
        torch.testing.assert_close(infer(server.port, x), model(x))


def test_slow_clients_hold_nobody_up(archive, model):
    x = torch.ones(1, 4)
    with serving(archive) as server, contextlib.ExitStack() as stack:
        for _ in range(50):
            slow = stack.enter_context(socket.create_connection(("127.0.0.1", server.port)))
            slow.sendall(b"POST /v2/models/net/infer HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n{")
        torch.testing.assert_close(infer(server.port, x), model(x))
        assert metric(server.port, "ltc_serve_connections") == 51


def test_a_client_that_leaves_takes_its_request_along(archive, model):
    x = torch.ones(1, 4)
    body = request_of(x).encode()
    with serving(archive, "--delay-us", "1000000") as server:  # the first request keeps the worker for a second
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            first = pool.submit(infer, server.port, x, "net")
            time.sleep(0.3)
            with socket.create_connection(("127.0.0.1", server.port)) as leaving:
                # It asks another function, so that it waits.
                leaving.sendall(b"POST /v2/models/net.centred/infer HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
                time.sleep(0.2)
            torch.testing.assert_close(first.result(), model(x))
        assert metric(server.port, 'ltc_serve_requests_total{model="net",end="cancelled"}') == 1


def test_deadlines_and_a_full_queue(archive):
    x = torch.ones(1, 4)
    with serving(archive, "--delay-us", "2000000", "--queue", "1") as server:
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            first = pool.submit(infer, server.port, x)
            time.sleep(0.5)
            begin = time.monotonic()
            late = request_of(x, parameters={"timeout": 100_000})
            status, _, body = ask(server.port, "/v2/models/net.centred/infer", late)
            assert status == 504 and "the deadline passed" in json.loads(body)["error"]
            assert time.monotonic() - begin < 1
            with socket.create_connection(("127.0.0.1", server.port)) as waiting:
                text = request_of(x).encode()
                waiting.sendall(b"POST /v2/models/net.centred/infer HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(text) + text)
                time.sleep(0.2)
                status, headers, body = ask(server.port, "/v2/models/net.centred/infer", request_of(x))
                assert status == 503 and headers["Retry-After"] and "the queue is full" in json.loads(body)["error"]
                assert b"200 OK" in waiting.recv(4096)
            first.result()


def test_ends_with_all_answers_given(archive, model):
    x = torch.ones(1, 4)
    with serving(archive, "--delay-us", "500000") as server:
        idle = http.client.HTTPConnection("127.0.0.1", server.port)
        idle.connect()
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            answers = [pool.submit(infer, server.port, x) for _ in range(8)]
            time.sleep(0.3)
            server.send_signal(signal.SIGTERM)
            for answer in answers:
                torch.testing.assert_close(answer.result(), model(x))
        assert server.wait(10) == 0
        assert server.stdout.read() == "ended\n"
        idle.close()
        with pytest.raises(ConnectionRefusedError):
            ask(server.port, "/v2/health/live")


def test_killed_and_started_again(archive, model):
    x = torch.ones(1, 4)
    with serving(archive) as server:
        infer(server.port, x)
        connection = http.client.HTTPConnection("127.0.0.1", server.port)
        connection.connect()  # open while the server dies
        server.kill()
        server.wait()
        with serving(archive, port=server.port) as again:
            torch.testing.assert_close(infer(again.port, x), model(x))
        connection.close()


def test_what_cannot_be_served(archive, tmp_path):
    def error(*arguments):
        done = subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, timeout=60)
        return done.returncode, done.stderr

    (tmp_path / "bad.ltc").write_text("nothing")
    assert error()[0] == 2
    code, message = error(archive, "--port", "70000")
    assert code == 2 and "--port 70000: this is to be an integer from 0 to 65535" in message
    for arguments, text in [
        ((tmp_path / "none.ltc",), "none.ltc"),
        ((tmp_path / "bad.ltc",), "bad.ltc"),
        ((archive, "--backend", "nothing"), "nothing"),
        ((archive, "--backend", "minimal", "--host", "203.0.113.1"), "cannot listen on 203.0.113.1:8000"),
    ]:
        code, message = error(*arguments)
        assert code == 1 and text in message
