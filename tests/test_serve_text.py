"""ltc serve: text, token by token, with samples/gpt2_archive."""

import concurrent.futures
import contextlib
import http.client
import json
import signal
import socket

import pytest
import torch

import ltc
from serve_client import ask, metric, serving, wait_until
from test_export import BUILD, output_of_script
from test_how_to import ROOT

PROMPTS = [[7, 11, 42], list(range(100, 116)), [3]]
COUNT = 32


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    """By number of slots, an archive; and by prompt the tokens that Python generates."""
    folder = tmp_path_factory.mktemp("gpt2")
    program = f"""
import sys
sys.path.insert(0, {str(ROOT / "samples/gpt2_archive")!r})
import export, torch
model = export.make_model()
for slots in 1, 4:
    export.export(model, slots).save(f"{{sys.argv[1]}}/gpt2_{{slots}}.ltc")
for prompt in {PROMPTS!r}:
    tokens = torch.tensor([prompt]).to("ltc")
    generated = model.generate(tokens, attention_mask=torch.ones_like(tokens), max_new_tokens={COUNT}, do_sample=False, pad_token_id=0)
    print(*generated[0, len(prompt):].tolist())
"""
    lines = output_of_script(program, folder, LTC_BACKEND="minimal").splitlines()
    return {slots: folder / f"gpt2_{slots}.ltc" for slots in (1, 4)}, [[int(token) for token in line.split()] for line in lines]


def body_of(prompt, count=COUNT, **parameters):
    return json.dumps({"tokens": prompt, "parameters": {"max_tokens": count, **parameters}})


def events(answer):
    """The events of a stream, as they come."""
    while line := answer.readline():
        assert line.startswith(b"data: ") and answer.readline() == b"\n"
        yield json.loads(line.removeprefix(b"data: "))


@contextlib.contextmanager
def streaming(port, name, body):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request("POST", f"/v2/models/{name}/generate_stream", body)
        yield connection.getresponse()
    finally:
        connection.close()


def stream(port, name, prompt):
    with streaming(port, name, body_of(prompt)) as answer:
        assert answer.status == 200 and answer.headers["Content-Type"] == "text/event-stream"
        *tokens, end = events(answer)
    assert end == {"model_name": name, "model_version": "1", "finish_reason": "length"}
    return [event["token"] for event in tokens]


@pytest.mark.parametrize("backend", ["minimal", "torchscript", "opencl"])
@pytest.mark.parametrize("slots", [1, 4])
def test_text_is_that_of_transformers(exported, backend, slots):
    if not (BUILD / f"python/ltc/plugins/libltc_{backend}.so").exists():
        pytest.skip(f"plugin {backend} was not built")
    archives, texts = exported
    name = f"gpt2_{slots}"
    with serving(archives[slots], "--backend", backend) as server:
        assert f"{name} generates text: prompts of up to 16 tokens, 8 texts at once in an instance, {'1' if slots == 1 else 'up to 4'} in a call" in server.report
        for prompt, text in zip(PROMPTS, texts):
            status, _, body = ask(server.port, f"/v2/models/{name}/generate", body_of(prompt))
            assert status == 200, body
            assert json.loads(body) == {"model_name": name, "model_version": "1", "tokens": text, "finish_reason": "length"}
        with concurrent.futures.ThreadPoolExecutor(12) as threads:  # more than there are slots
            assert list(threads.map(lambda prompt: stream(server.port, name, prompt), PROMPTS * 8)) == texts * 8
        labels = f'{{model="{name}"}}'
        assert metric(server.port, f"ltc_serve_generated_tokens_total{labels}") == 27 * COUNT
        assert metric(server.port, f"ltc_serve_running_texts{labels}") == metric(server.port, f"ltc_serve_waiting_requests{labels}") == 0
        steps, texts_of_steps = (metric(server.port, f"ltc_serve_decode_texts_{kind}{labels}") for kind in ("count", "sum"))
        assert texts_of_steps == 27 * (COUNT - 1) and (steps == texts_of_steps) == (slots == 1)


def test_requests_and_what_is_wrong_with_them(exported):
    archives, texts = exported
    with serving(archives[1], "--max-tokens", "100") as server:
        (first, second, *_) = texts[0]
        status, _, body = ask(server.port, "/v2/models/gpt2_1/generate", json.dumps({"tokens": PROMPTS[0], "id": "a", "parameters": {"stop_token_ids": [second]}}))
        assert (status, json.loads(body)["tokens"]) == (200, texts[0][: texts[0].index(second) + 1])
        assert (json.loads(body)["finish_reason"], json.loads(body)["id"]) == ("stop", "a")
        status, _, body = ask(server.port, "/v2/models/gpt2_1/generate", body_of([3], 100))
        assert len(json.loads(body)["tokens"]) == 63  # and one of the prompt: max_positions of the archive
        for request, message in [
            (body_of([]), "a prompt has from 1 to 16"),
            (body_of([3], 101), "max_tokens is 101, and is to be from 1 to 100"),
            (body_of([3], temperature=1), "there is no parameter temperature"),
        ]:
            for action in "generate", "generate_stream":
                status, _, body = ask(server.port, f"/v2/models/gpt2_1/{action}", request)
                assert status == 400 and message in json.loads(body)["error"]
        for action in "generate", "generate_stream":  # the plugin refuses the token
            status, _, body = ask(server.port, f"/v2/models/gpt2_1/{action}", body_of([500]))
            assert status in (400, 500) and "500" in json.loads(body)["error"]
        assert ask(server.port, "/v2/models/gpt2_1/generate")[0] == 400  # GET
        assert ask(server.port, "/v2/models/gpt2_1/infer", "{}")[0] == 404
        status, _, body = ask(server.port, "/v2/models/gpt2_1")
        assert status == 200 and json.loads(body)["parameters"] == {"max_prompt": 16, "max_positions": 64}
        assert stream(server.port, "gpt2_1", PROMPTS[0]) == texts[0]
        assert metric(server.port, 'ltc_serve_requests_total{model="gpt2_1",end="failed"}') == 2


@pytest.fixture(scope="module")
def endless(tmp_path_factory):
    """Counts up, and has no last position."""

    class Counter(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("last", torch.zeros(1, dtype=torch.int64))

        def prefill(self, tokens, length):
            return self.decode(tokens.index_select(1, length - 1)[0], length)

        def decode(self, token, position):
            self.last.copy_(token + 1)
            return self.last + 0 * position

    counter = Counter().to("ltc")
    example, shapes = (torch.tensor([[1, 2]]), torch.tensor([2])), {"tokens": {1: torch.export.Dim("prompt", max=5)}}
    with pytest.raises(RuntimeError, match=r"its sample with tokens \[1, 1\], length \[1\] fails: .*sample=False"):
        ltc.export(counter.prefill, example, dynamic_shapes=shapes)
    archive = ltc.export(counter.prefill, example, dynamic_shapes=shapes, sample=False)
    archive.add(counter.decode, (torch.tensor([1]), torch.tensor([2])))
    path = tmp_path_factory.mktemp("endless") / "endless.ltc"
    archive.save(path)
    return path


def test_prompts_of_many_lengths(endless):
    with serving(endless) as server:
        for length in range(1, 6):
            status, _, body = ask(server.port, "/v2/models/endless/generate", body_of([9] * (length - 1) + [100 * length], 3))
            assert (status, json.loads(body)["tokens"]) == (200, [100 * length + 1, 100 * length + 2, 100 * length + 3])
        assert ask(server.port, "/v2/models/endless/generate", body_of([9] * 6))[0] == 400


def test_a_client_that_leaves_ends_its_text(endless):
    with serving(endless, "--texts", "1", "--max-tokens", "1000000000") as server:
        running, cancelled = 'ltc_serve_running_texts{model="endless"}', 'ltc_serve_requests_total{model="endless",end="cancelled"}'
        with streaming(server.port, "endless", body_of([1], 10**9)) as answer:
            assert [next(events(answer))["token"] for _ in range(3)] == [2, 3, 4]
            assert metric(server.port, running) == 1
        wait_until(lambda: metric(server.port, running) == 0)
        assert metric(server.port, cancelled) == 1
        assert json.loads(ask(server.port, "/v2/models/endless/generate", body_of([1], 2))[2])["tokens"] == [2, 3]


def test_a_deadline_in_the_middle_of_a_stream(endless):
    with serving(endless, "--max-tokens", "1000000000") as server:
        with streaming(server.port, "endless", body_of([1], 10**9, timeout=300_000)) as answer:
            *tokens, end = events(answer)
        assert tokens[0]["token"] == 2 and end["error"].startswith("the deadline passed")
        status, _, body = ask(server.port, "/v2/models/endless/generate", body_of([1], 10**9, timeout=300_000))
        assert status == 504 and "the deadline passed" in json.loads(body)["error"]
        wait_until(lambda: metric(server.port, 'ltc_serve_running_texts{model="endless"}') == 0)


def test_a_client_that_does_not_read_costs_its_text_alone(endless):
    with serving(endless, "--max-tokens", "1000000000", "--io-limit-s", "1") as server:
        body = body_of([1], 10**9).encode()
        with socket.create_connection(("127.0.0.1", server.port)) as slow:
            slow.sendall(b"POST /v2/models/endless/generate_stream HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
            running = 'ltc_serve_running_texts{model="endless"}'
            wait_until(lambda: metric(server.port, running) == 1)
            assert json.loads(ask(server.port, "/v2/models/endless/generate", body_of([7], 2))[2])["tokens"] == [8, 9]
            wait_until(lambda: metric(server.port, running) == 0)  # its buffers are full by then


def test_a_stream_is_finished_at_the_end_of_the_server(endless):
    with serving(endless, "--max-tokens", "1000000000") as server:
        with streaming(server.port, "endless", body_of([1], 20_000)) as answer:
            of_stream = events(answer)
            assert next(of_stream)["token"] == 2
            server.send_signal(signal.SIGTERM)
            *tokens, end = of_stream
        assert len(tokens) == 19_999 and end["finish_reason"] == "length"
        assert server.wait(30) == 0


def test_an_archive_whose_functions_are_others(tmp_path):
    def prefill(tokens):
        return tokens + 1

    def decode(token):
        return token + 1

    archive = ltc.export(prefill, (torch.zeros(2, device="ltc"),))
    archive.add(decode, (torch.zeros(2, device="ltc"),))
    archive.save(tmp_path / "other.ltc")
    with serving(tmp_path / "other.ltc") as server:
        assert "other generates no text: text is generated with prefill(tokens: i64[1,P]" in server.report
        assert "These are prefill(tokens: f32[2]) -> (result: f32[2]) and decode(" in server.report
        assert ask(server.port, "/v2/models/other.prefill")[0] == 200
