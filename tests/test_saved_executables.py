"""Executables that the plugin saves: the second process compiles nothing and computes the same bits, for each model of the table."""

import json
from pathlib import Path

import pytest

from comparing import output_of
from models import attention, hugging_face, recurrent, vision

PROGRAM = """
    import json, sys, torch, ltc
    sys.path.insert(0, TESTS)
    from checking import Trainer, batches
    from models import GROUP

    results = {}
    for row in GROUP.ROWS:
        ltc.metrics.reset()
        trainer = Trainer(row, "ltc")
        losses = [trainer.step(batch)[1].item().hex() for batch in batches(row, "ltc")]
        results[row.name] = losses, ltc.metrics.counter_value("UncachedCompile"), ltc.metrics.counter_value("DiskCacheHits")
    print(json.dumps(results))
"""


@pytest.mark.parametrize("group", [vision, recurrent, attention, hugging_face], ids=lambda group: group.__name__.partition(".")[2])
def test_the_second_process_computes_the_same(group, tmp_path):
    program = PROGRAM.replace("GROUP", group.__name__.partition(".")[2]).replace("TESTS", repr(str(Path(__file__).parent)))
    first, second = (json.loads(output_of(program, LTC_CACHE="1", LTC_CACHE_DIR=str(tmp_path))) for _ in range(2))
    assert first.keys() == second.keys() == {row.name for row in group.ROWS}
    assert sum(compiles for _, compiles, _ in first.values()) >= len(first)
    for name, (losses, compiles, _) in second.items():
        assert compiles == 0 and losses == first[name][0], name
    assert sum(hits for _, _, hits in second.values()) >= len(second)
