"""abidiff with the rule that a minor version only appends: the second gate beside asserts of offsets, types and values. Each gate finds seeded
changes that the other one misses."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "sdk/manifest"))

import append_rule  # noqa: E402
import minors  # noqa: E402

needs_abidiff = pytest.mark.skipif(not shutil.which("abidiff"), reason="abidiff is not installed")


@needs_abidiff
def test_each_rehearsed_version_only_appends(tmp_path):
    minors.write(tmp_path)
    releases = sorted(path for path in tmp_path.iterdir())
    for at, old in enumerate(releases):
        for new in releases[at:]:
            assert append_rule.compare(old, new) == []
        for newer in releases[at + 1:]:
            assert append_rule.compare(newer, old), f"{old.name} has less than {newer.name}"


def asserted(headers):
    """Whether the asserts hold."""
    command = ["c++", "-std=c++11", "-fsyntax-only", f"-I{headers}", str(ROOT / "sdk/tests/layout_test.cpp")]
    return subprocess.run(command, capture_output=True).returncode == 0


BOTH, ASSERTS, ABIDIFF = ("asserts", "abidiff"), ("asserts",), ("abidiff",)
CHANGES = [
    ("  uint64_t limit_bytes;\n  uint64_t largest_free_bytes;", "  uint64_t largest_free_bytes;\n  uint64_t limit_bytes;", BOTH),
    ("  uint32_t effort;", "  uint64_t effort;", BOTH),
    ("uint64_t timeout_ns, bool", "int64_t timeout_ns, bool", BOTH),
    ("typedef uint32_t ltc_dtype;", "typedef int32_t ltc_dtype;", BOTH),
    ("  uint64_t run_id;           /* for traces: the same in all that belongs to one step */\n", "", BOTH),
    ("  LTC_U4_X2 = 24", "  LTC_U4_X2 = 25", ASSERTS),
    ("const ltc_program* program, const ltc_sink* sink", "ltc_program* program, const ltc_sink* sink", ASSERTS),
    ("    const double* floats;", "    const float* floats;", ASSERTS),
    ("typedef struct ltc_buffer ltc_buffer;", "typedef struct ltc_memory ltc_buffer;", ABIDIFF),
]


@needs_abidiff
@pytest.mark.parametrize("old, new, found_by", CHANGES)
def test_a_change_is_found(tmp_path, old, new, found_by):
    include = tmp_path / "include"
    shutil.copytree(ROOT / "sdk/include", include)
    text = (include / "ltc/plugin.h").read_text()
    assert old in text
    (include / "ltc/plugin.h").write_text(text.replace(old, new))
    found = ["asserts"] if not asserted(include) else []
    found += ["abidiff"] if append_rule.compare(ROOT / "sdk/include", include) else []
    assert tuple(found) == found_by
