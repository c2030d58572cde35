"""Text of `ltc serve`: tokens in a second and their latency, for many clients at once.

    python bench/serving_text.py [--backend PLUGIN] [--connections N,N] [--slots N,N] [--texts N] [--tokens N]

GPT-2 small with random weights, prompts of 16 tokens. Each connection asks for one text after the other, as a stream. `first token` is from the
request until the first token, `between` from a token to the next, each as median and 99th percentile. `slots` is the number of texts that a
call of `decode` computes at most. 8 texts run at once, the default of `ltc serve`; others wait. `transformers` is eager PyTorch in this process
without a server: batches of 1 and of 8 texts that begin and end together. PyTorch's kernels have one thread.
"""

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SIZE = {"n_embd": 768, "n_layer": 12, "n_head": 12, "vocab_size": 50257}


def sample():
    sys.path.insert(0, str(ROOT / "samples/gpt2_archive"))
    import export

    return export


def model_of_bench(device):
    import transformers

    import torch

    torch.manual_seed(0)
    config = transformers.GPT2Config(**SIZE, n_positions=128, bos_token_id=0, eos_token_id=None)
    return transformers.GPT2LMHeadModel(config).to(device).eval()


def export(path, slots):
    sample().export(model_of_bench("ltc"), int(slots)).save(path)


def prompt(number):
    return [(7 * number + 13 * place) % SIZE["vocab_size"] for place in range(16)]


async def ask(port, number, tokens):
    """When the request was sent, and when each token was there."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    body = json.dumps({"tokens": prompt(number), "parameters": {"max_tokens": tokens}})
    begin = time.perf_counter()
    writer.write(f"POST /v2/models/gpt2/generate_stream HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode())
    times = []
    async for line in reader:
        if line.startswith(b'data: {"error"'):
            raise RuntimeError(line.decode())
        if line.startswith(b"data: ") and b'"token"' in line:
            times.append(time.perf_counter())
    writer.close()
    if len(times) != tokens:
        raise RuntimeError(f"{len(times)} tokens came, and not {tokens}")
    return begin, times


async def load(port, connections, texts, tokens):
    async def client(index):
        return [await ask(port, index + connections * text, tokens) for text in range(texts)]

    begin = time.perf_counter()
    answers = [one for of_client in await asyncio.gather(*map(client, range(connections))) for one in of_client]
    return len(answers) * tokens / (time.perf_counter() - begin), answers


def row(name, slots, connections, rate, first, between):
    def pair(times):
        times = sorted(times)
        return f"{1e3 * times[len(times) // 2]:.1f} | {1e3 * times[int(len(times) * 0.99)]:.1f}"

    print(f"| {name} | {slots} | {connections} | {rate:.1f} | {pair(first)} | {pair(between)} |", flush=True)


def measure(slots, folder, arguments):
    import ltc

    path = f"{folder}/gpt2.ltc"
    subprocess.run([sys.executable, __file__, "--export", path, str(slots)], check=True)
    command = [Path(ltc.__file__).parent / "bin/ltc-serve", path, "--port", "0", "--backend", arguments.backend]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"}) as server:
        try:
            ready = next((line for line in server.stdout if line.startswith("ready on ")), None)
            if ready is None:
                raise RuntimeError("the server ended")
            port = int(ready.rsplit(":", 1)[1])
            asyncio.run(load(port, 2, 1, 4))
            for connections in arguments.connections:
                rate, answers = asyncio.run(load(port, connections, max(1, arguments.texts // connections), arguments.tokens))
                row("ltc serve", slots, connections, rate, [times[0] - begin for begin, times in answers],
                    [after - before for _, times in answers for before, after in zip(times, times[1:])])  # fmt: skip
        finally:
            server.terminate()


def measure_eager(batch, tokens):
    sample()
    import transformers

    import torch

    torch.set_num_threads(1)
    model, times = model_of_bench("cpu"), []

    class Clock(transformers.StoppingCriteria):
        def __call__(self, ids, scores, **_):
            times.append(time.perf_counter())
            return torch.zeros(ids.shape[0], dtype=torch.bool)

    ids = torch.tensor([prompt(number) for number in range(batch)])
    options = {"attention_mask": torch.ones_like(ids), "pad_token_id": 0, "do_sample": False, "stopping_criteria": [Clock()]}
    model.generate(ids, max_new_tokens=4, **options)
    times.clear()
    begin = time.perf_counter()
    model.generate(ids, max_new_tokens=tokens, **options)
    rate = batch * tokens / (time.perf_counter() - begin)
    row("transformers", batch, "-", rate, [times[0] - begin], [after - before for before, after in zip(times, times[1:])])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    numbers = {"type": lambda text: [int(one) for one in text.split(",")]}
    parser.add_argument("--backend", default="torchscript")
    parser.add_argument("--connections", default=[1, 8, 64], **numbers)
    parser.add_argument("--slots", default=[1, 8], **numbers)
    parser.add_argument("--texts", type=int, default=8, help="of all connections; each asks for one at least")
    parser.add_argument("--tokens", type=int, default=32)
    parser.add_argument("--export", nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.export:
        return export(*arguments.export)
    print("| server | slots | connections | tokens in a second | first token, ms | 99th percentile | between, ms | 99th percentile |")
    print("|---|" + "---|" * 7, flush=True)
    for batch in 1, 8:
        measure_eager(batch, arguments.tokens)
    for slots in arguments.slots:
        with tempfile.TemporaryDirectory() as folder:
            measure(slots, folder, arguments)
    return None


if __name__ == "__main__":
    main()
