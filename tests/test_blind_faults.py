"""The conformance suite finds faults of plugins that were written without knowledge of it: every tenth here.

LTC_ALL_BLIND_FAULTS=1 takes all but those of blind_faults/by_chance.txt: races, which the suite finds in some runs only.
"""

import os
import pathlib
import subprocess
import sys

import pytest

FOLDER = pathlib.Path(__file__).parent / "blind_faults"
sys.path.insert(0, str(FOLDER))
import run as blind  # noqa: E402


@pytest.fixture(scope="module")
def work(tmp_path_factory):
    folder = tmp_path_factory.mktemp("blind_faults")
    for plugin in blind.FLAGS:
        blind.compile_objects(blind.SAMPLE, plugin, blind.SOURCES, folder / plugin)
    return folder


BY_CHANCE = (FOLDER / "by_chance.txt").read_text().split()
FAULTS = [fault for fault in blind.faults() if not fault.get("equivalent") and fault["id"] not in BY_CHANCE]
CHOSEN = FAULTS if os.environ.get("LTC_ALL_BLIND_FAULTS") else FAULTS[::10]


@pytest.mark.skipif(not blind.SUITE.exists(), reason="the conformance suite is not built")
@pytest.mark.parametrize("fault", CHOSEN, ids=lambda fault: fault["id"])
def test_fault(fault, work):
    assert blind.find(fault, blind.SUITE, work, False, 240)


def test_sentences():
    text = blind.sentences()
    assert [fault["id"] for fault in blind.faults() if fault["sentence"] not in text] == []


def test_sample_passes(work):
    if not blind.SUITE.exists():
        pytest.skip("the conformance suite is not built")
    for plugin in blind.FLAGS:
        library = blind.build({"id": f"sample_{plugin}", "plugin": plugin, "changes": []}, work)
        assert blind.run_suite(blind.SUITE, library, blind.FIRST, 240) == []
