"""Each derived op, decomposed: the operators of PyTorch's database that call it give what the CPU gives.

rule_calls.py calls the rules that no operator of the database calls. The rest are named here with the test that calls them.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import filelock
import pytest

import ltc
from comparing import output_of
from ltc import _C

TESTS = Path(__file__).parent
RULES = [name for _, name, _, tier, _ in _C.op_rows() if tier == 1]

# Neither in the database nor in rule_calls.py.
ELSEWHERE = {
    "aten::_native_batch_norm_legit_functional": "test_models.py: what torch.nn.BatchNorm records",
    "aten::positive": "an alias of its operand, which nobody records",
    "ltc::lstm_layer": "test_models_elsewhere.py",
    "ltc::lstm_layer_backward": "test_models_elsewhere.py",
    "ltc::gru_layer": "test_models_elsewhere.py",
    "ltc::gru_layer_backward": "test_models_elsewhere.py",
    "ltc::packed_lstm_layer": "test_models_elsewhere.py",
    "ltc::packed_lstm_layer_backward": "test_models_elsewhere.py",
    "ltc::packed_gru_layer": "test_models_elsewhere.py",
    "ltc::packed_gru_layer_backward": "test_models_elsewhere.py",
    "ltc::packed_rnn_layer": "test_models_elsewhere.py",
    "ltc::packed_rnn_layer_backward": "test_models_elsewhere.py",
    "ltc::as_strided": "test_sample_plugins.py, with LTC_CLAIMS=minimal",
    "ltc::as_strided_scatter": "test_sample_plugins.py, with LTC_CLAIMS=minimal",
    "ltc::roll": "test_known_sizes.py; as this, aten::roll is recorded",
    **{f"aten::_fused_{name}_{overload}": "test_optimizers.py: no plugin here claims them"
       for name in ("adam", "adamw", "sgd", "adagrad") for overload in ("", ".tensor_lr")},
}


@pytest.fixture(scope="session")
def samples(tmp_path_factory):
    """By operator, what it calls and what failed. One process runs them for all workers."""
    folder = tmp_path_factory.getbasetemp()
    folder = folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder
    answer = folder / "rule_samples.json"
    with filelock.FileLock(str(answer) + ".lock"):
        if not answer.exists():
            path = [str(Path(ltc.__file__).parent.parent), str(TESTS.parent / "conformance")]
            environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path), "LTC_CLAIMS": "minimal", "LTC_LOG": "error"}
            part = answer.with_suffix(".part")
            subprocess.run([sys.executable, TESTS / "rule_samples.py", part], env=environment, check=True)
            part.rename(answer)
    return json.loads(answer.read_text())


def is_call_of(op, rule):
    """In place and with out= an op is recorded as its functional form."""
    base, _, overload = op.partition(".")
    names = {op, base.removesuffix("_") + ("." + overload if overload else ""), base.removesuffix("_") if overload == "out" else op}
    return rule in names or (rule.partition(".")[0] in names and overload in ("", "out"))


@pytest.mark.parametrize("rule", RULES)
def test_rule(rule, samples):
    users = [name for name, found in samples.items() if any(is_call_of(op, rule) for op in found["ops"])]
    failures = [failure for name in users for failure in samples[name]["failures"]]
    assert not failures, "\n".join(failures[:5])
    assert users or rule in ELSEWHERE, "nothing calls it, and no other test is named"
    assert not (users and rule in ELSEWHERE), "it is listed as without samples but has some"


EACH_RESULT_ALONE = """
    import torch, ltc
    from torch.testing._internal.common_methods_invocations import op_db
    from comparing import assert_close, to_device

    NAMES = {"aminmax", "cummax", "cummin", "frexp", "kthvalue", "max", "median", "min", "mode", "nanmedian", "native_batch_norm", "native_layer_norm", "sort",
             "std_mean", "topk", "unbind", "var_mean", "linalg.cholesky_ex", "linalg.eigh", "linalg.inv_ex", "linalg.lu_factor", "linalg.qr", "linalg.slogdet"}
    torch.set_num_threads(1)
    count = 0
    for op in op_db:
        if op.name not in NAMES:
            continue
        for sample in list(op.sample_inputs("cpu", torch.float32))[:2]:
            call = (sample.input, *sample.args), sample.kwargs
            expected = op(*call[0], **call[1])
            if not isinstance(expected, tuple) or not all(isinstance(each, torch.Tensor) for each in expected):
                continue
            for i in range(len(expected)):
                args, kwargs = to_device(call)
                try:
                    assert_close(op(*args, **kwargs)[i].cpu(), expected[i], rtol=1e-3, atol=1e-3)
                except AssertionError as error:
                    print("FAILED", op.formatted_name, i, error)
                count += 1
    print("results", count)
"""


def test_each_result_alone():
    """A rule gives one result of several where the others are not read. With LTC_VERIFY=1 a rule that fails is an error."""
    path = os.pathsep.join([str(TESTS), *sys.path])
    output = output_of(EACH_RESULT_ALONE, LTC_CLAIMS="minimal", LTC_LOG="error", PYTHONPATH=path)
    assert "FAILED" not in output, output
    assert int(output.split()[-1]) > 60
