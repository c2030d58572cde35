"""A process that runs operators: reads one request per line, answers with one line per mode and dtype, and a last one.

request: {"op": name, "modes": [...], "dtypes": [...], "samples": limit}
answers: {"at": "forward float32"} before each mode and dtype, its tally after it, {"done": true} at the end.
"""

import json
import os
import sys


def main():
    for variable in ("OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(variable, "1")
    os.environ.setdefault("LTC_CACHE", "0")  # nobody runs these programs again; they would push out the user's
    # Results travel over the real standard output; whatever an operator prints goes to standard error.
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)

    from torch.testing._internal.common_methods_invocations import op_db

    import ltc

    from .cases import DTYPES
    from .run import Operator, prepare

    prepare()
    ops = {op.formatted_name: op for op in op_db}
    print(json.dumps({"ready": True}), file=answers)
    for line in sys.stdin:
        request = json.loads(line)
        op = ops[request["op"]]
        operator = Operator(op, "ltc", ltc.metrics)
        supported = op.supported_dtypes("cpu")
        for dtype in (name for name in request["dtypes"] if DTYPES[name] in supported or name == "float32" and "errors" in request["modes"]):
            for mode in request["modes"]:
                if DTYPES[dtype] not in supported and mode != "errors":
                    continue
                print(json.dumps({"at": f"{mode} {dtype}"}), file=answers)
                print(json.dumps(operator.run(mode, dtype, request["samples"])), file=answers)
        print(json.dumps({"done": True}), file=answers)


if __name__ == "__main__":
    main()
