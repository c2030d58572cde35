"""Text generation with a growing cache of keys and values: tokens per second, latency per token, compiles.

    python bench/generation.py [--texts N] [--tokens N] [--sides eager,ltc,compile] [--models gpt2,...] [--caches dynamic,static]
                               [--batches 1,8] [--sampled]

One row for each model, cache and batch: tokens per second of the first text and of those after it (the median), and the median and the 99th
percentile of the time between two tokens behind the first text. Each side runs in a process of its own. `compiles` are those of the device in
the first text and in all others. The prompts differ, and have equal lengths. `compile` is torch.compile of the forward with a static cache.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

MODELS = {
    # GPT-2 small as published (124 million parameters), the others as deep as a test on two cores allows.
    "gpt2": ("GPT2LMHeadModel", "GPT2Config", {}),
    "llama": ("LlamaForCausalLM", "LlamaConfig", {"hidden_size": 512, "intermediate_size": 1376, "num_hidden_layers": 8, "num_attention_heads": 8,
                                                  "vocab_size": 32000, "max_position_embeddings": 512}),
    "t5": ("T5ForConditionalGeneration", "T5Config", {"decoder_start_token_id": 0}),
}
PROMPT = 16


def measure(side, name, cache, batch, sampled, texts, tokens):
    import torch

    sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))
    from models import vision  # noqa: F401  torchvision's import, which transformers' needs
    import transformers

    torch.set_num_threads(1)
    torch.manual_seed(0)
    of_model, of_config, config = MODELS[name]
    model = getattr(transformers, of_model)(getattr(transformers, of_config)(**config)).eval()
    device = "cpu"
    if side == "ltc":
        import ltc

        device = "ltc"
    model = model.to(device)
    if side == "ltc":
        ltc.sync()  # the weights are there before the first text begins
    if side == "compile":
        model.forward = torch.compile(model.forward, backend="inductor")

    times = []

    class Clock(transformers.StoppingCriteria):
        def __call__(self, ids, scores, **_):
            ids[:, -1].tolist()
            times.append(time.perf_counter())
            return torch.zeros(ids.shape[0], dtype=torch.bool, device=ids.device)

    def compiles():
        return ltc.metrics.counter_value("UncachedCompile") if side == "ltc" else 0

    options = {"max_new_tokens": tokens, "min_new_tokens": tokens, "do_sample": sampled, "top_k": 50}
    if cache == "static":
        options["cache_implementation"] = "static"
    rates, gaps, compiled, outputs = [], [], [], []
    for text in range(texts):
        torch.manual_seed(text)
        ids = torch.randint(3, 30000, (batch, PROMPT)).to(device)
        before = compiles()
        times.clear()
        begin = time.perf_counter()
        out = model.generate(input_ids=ids, attention_mask=torch.ones_like(ids), pad_token_id=0, stopping_criteria=[Clock()], **options)
        outputs.append(out.cpu().tolist())
        rates.append(batch * tokens / (time.perf_counter() - begin))
        compiled.append(compiles() - before)
        if text:
            gaps += [1e3 * (after - earlier) for earlier, after in zip(times, times[1:])]
    gaps.sort()
    print(json.dumps({"first": rates[0], "later": statistics.median(rates[1:]), "p50": gaps[len(gaps) // 2], "p99": gaps[int(len(gaps) * 0.99)],
                      "compiles": [compiled[0], sum(compiled[1:])], "outputs": outputs}))


def run(*arguments):
    command = [sys.executable, __file__, "--one", *map(str, arguments)]
    done = subprocess.run(command, env={**os.environ, "LTC_CACHE": "0"}, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.stderr.write(done.stderr[-2000:])
        return None
    return json.loads(done.stdout.splitlines()[-1])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--texts", type=int, default=4)
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--sides", default="eager,ltc")
    parser.add_argument("--models", default="gpt2,llama,t5")
    parser.add_argument("--caches", default="dynamic,static")
    parser.add_argument("--batches", default="1,8")
    parser.add_argument("--sampled", action="store_true")
    parser.add_argument("--one", nargs=7, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        side, name, cache, batch, sampled, texts, tokens = arguments.one
        return measure(side, name, cache, int(batch), sampled == "True", int(texts), int(tokens))
    print("| model | side | tokens/s, first text | later texts | ms per token, median | 99th percentile | compiles | same tokens |")
    print("|---|---|---|---|---|---|---|---|")
    for name in arguments.models.split(","):
        for cache in arguments.caches.split(","):
            for batch in arguments.batches.split(","):
                eager = None
                for side in arguments.sides.split(","):
                    found = run(side, name, cache, batch, arguments.sampled, arguments.texts, arguments.tokens)
                    label = f"| {name}, {cache}, batch {batch} | {side} | "
                    if found is None:
                        print(label + "failed | | | | | |", flush=True)
                        continue
                    eager = eager or found
                    ratios = [f"{found[key]:.1f} ({found[key] / eager[key]:.2f})" for key in ("first", "later")]
                    print(label + f"{ratios[0]} | {ratios[1]} | {found['p50']:.1f} | {found['p99']:.1f} | "
                          f"{found['compiles'][0]} + {found['compiles'][1]} | {found['outputs'] == eager['outputs']} |", flush=True)
    return None


if __name__ == "__main__":
    main()
