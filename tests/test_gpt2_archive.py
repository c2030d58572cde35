"""samples/gpt2_archive: text from an archive is that of transformers' generate on the same plugin."""

import os
import subprocess
import sys

import pytest

from test_export import BUILD, output_of_script, runtime_output
from test_how_to import IS_BUILD_OF_DEV, ROOT

SAMPLE = ROOT / "samples/gpt2_archive"
PROMPTS = [[7, 11, 42], list(range(100, 116)), [3]]
COUNT = 32


@pytest.fixture(scope="module", params=["torchscript", "opencl", "minimal"])
def exported(request, tmp_path_factory):
    """The plugin, the archive, and by prompt the tokens that Python generates."""
    backend = request.param
    if not (BUILD / f"python/ltc/plugins/libltc_{backend}.so").exists():
        pytest.skip(f"plugin {backend} was not built")
    archive = tmp_path_factory.mktemp("gpt2") / "gpt2.ltc"
    program = f"""
import sys
sys.path.insert(0, {str(SAMPLE)!r})
import export, torch
model = export.make_model()
export.export(model).save(sys.argv[1])
for prompt in {PROMPTS!r}:
    tokens = torch.tensor([prompt]).to("ltc")
    generated = model.generate(tokens, attention_mask=torch.ones_like(tokens), max_new_tokens={COUNT}, do_sample=False, pad_token_id=0)
    print(*generated[0, len(prompt):].tolist())
"""
    texts = [[int(token) for token in line.split()] for line in output_of_script(program, archive, LTC_BACKEND=backend).splitlines()]
    assert [len(text) for text in texts] == [COUNT] * len(PROMPTS) and len(set(map(tuple, texts))) == len(texts)
    assert all(len(set(text)) > COUNT // 4 for text in texts)  # no text repeats one token
    return backend, archive, texts


def test_tokens_from_python_without_pytorch(exported):
    backend, archive, texts = exported
    program = f"""
sys.path.insert(0, {str(SAMPLE)!r})
import generate
session = ltc_runtime.load(sys.argv[1]).session()
for reset in False, True:
    for prompt in {PROMPTS!r}:
        print(*generate.generate(session, 16, prompt, {COUNT}))
    session.reset()
"""
    printed = runtime_output(program, archive, LTC_BACKEND=backend).splitlines()
    assert [[int(token) for token in line.split()] for line in printed] == texts * 2


@pytest.mark.skipif(not IS_BUILD_OF_DEV, reason="the sample is built by ./dev")
def test_tokens_from_cpp(exported):
    backend, archive, texts = exported
    program = BUILD / "samples/generate-archive"
    for prompt, text in zip(PROMPTS, texts):
        done = subprocess.run([program, archive, str(COUNT), *map(str, prompt)], env={**os.environ, "LTC_BACKEND": backend},
                              capture_output=True, text=True, timeout=300)  # fmt: skip
        assert done.returncode == 0 and [int(token) for token in done.stdout.split()] == text, done.stderr
    wrong = subprocess.run([program, archive, "1", *["1"] * 17], env={**os.environ, "LTC_BACKEND": backend}, capture_output=True, text=True)
    assert wrong.returncode == 1 and wrong.stderr == "generate: a prompt has from 1 to 16 tokens\n"


def test_the_script_prints_the_same(exported):
    backend, archive, texts = exported
    done = subprocess.run([sys.executable, SAMPLE / "generate.py", archive, str(COUNT), *map(str, PROMPTS[0])],
                          env={**os.environ, "PYTHONPATH": str(BUILD / "python"), "LTC_BACKEND": backend}, capture_output=True, text=True)  # fmt: skip
    assert done.stdout.split() == [str(token) for token in texts[0]], done.stderr
