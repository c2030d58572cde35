"""Executables that the plugin saves: the second process compiles nothing and computes the same bits, for each model of the table."""

import json
from pathlib import Path

import pytest

from comparing import output_of
from models import ROWS

PROGRAM = """
    import json, sys, torch, ltc
    sys.path.insert(0, TESTS)
    from checking import Trainer, batches
    from models import ROWS

    row = next(row for row in ROWS if row.name == NAME)
    trainer = Trainer(row, "ltc")
    losses = [trainer.step(batch)[1].item().hex() for batch in batches(row, "ltc")]
    print(json.dumps([losses, ltc.metrics.counter_value("UncachedCompile"), ltc.metrics.counter_value("DiskCacheHits")]))
"""


@pytest.mark.parametrize("name", [row.name for row in ROWS])
def test_the_second_process_computes_the_same(name, tmp_path):
    program = PROGRAM.replace("NAME", repr(name)).replace("TESTS", repr(str(Path(__file__).parent)))
    runs = [json.loads(output_of(program, LTC_CACHE="1", LTC_CACHE_DIR=str(tmp_path))) for _ in range(2)]
    assert runs[0][1] > 0
    assert runs[1][1] == 0 and runs[1][2] > 0
    assert runs[0][0] == runs[1][0]
