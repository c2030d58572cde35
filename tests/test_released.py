"""A released version of the ABI never changes; the test of that finds each kind of change."""

import copy
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "sdk/manifest"))

import manifest  # noqa: E402
import release  # noqa: E402

ABI = manifest.read()
OPSET = (ROOT / "sdk/include/ltc/opset.h").read_text()
RELEASED = release.released()


def test_no_release_has_changed():
    assert list(release.changed(ABI, OPSET, RELEASED)) == []


def test_no_op_of_a_later_version_has_an_id():
    assert f"kLastReleasedOp = {RELEASED[-1]['last_op']};" in (ROOT / "core/ops/op_table.h").read_text()


def test_header_and_changes_name_each_release():
    header, changes = (ROOT / "sdk/include/ltc/plugin.h").read_text(), (ROOT / "sdk/CHANGELOG.md").read_text()
    assert [one["version"] for one in RELEASED] == ["1.0"]
    for one in RELEASED:
        assert f"Version {one['version']}, released {one['date']}" in header
        assert re.search(rf"^## {one['version']} \({one['date']}\)$", changes, re.MULTILINE)


def struct(abi, name):
    return next(one for one in abi["struct"] if one["name"] == name)


def function(abi, name):
    return next(one for one in abi["function"] if one["name"] == name)


BREAKS = {
    "a field's type": lambda abi: struct(abi, "ltc_compile_args")["fields"][-1].update(type="uint64_t"),
    "a field that goes": lambda abi: struct(abi, "ltc_type")["fields"].pop(),
    "a field that comes": lambda abi: struct(abi, "ltc_type")["fields"].append({"name": "more", "type": "size_t"}),
    "two fields that change places": lambda abi: struct(abi, "ltc_type")["fields"].reverse(),
    "a slot that becomes required": lambda abi: function(abi, "memory_stats").update(required="computing"),
    "a code that is gone": lambda abi: function(abi, "execute")["codes"].pop(),
    "a parameter that may no longer be NULL": lambda abi: function(abi, "transfer")["params"][-1].update(null="never"),
    "an enumerator's value": lambda abi: abi["enum"][0]["values"][0].update(value=77),
    "an extension's kind": lambda abi: abi["extension"][0].update(kind=9),
    "a constant": lambda abi: abi["constant"][0].update(value="7"),
}


@pytest.mark.parametrize("change", BREAKS.values(), ids=BREAKS)
def test_a_change_is_found(change):
    abi = copy.deepcopy(ABI)
    change(abi)
    assert abi != ABI
    assert list(release.changed(abi, OPSET, RELEASED))


@pytest.mark.parametrize("old, new", [('"aten::neg", "T:self"', '"aten::neg", "T:self T:other"'), ("X(2, ", "X(2000, "), ("X(3, MINIMAL", "X(3, WHOLE")])
def test_a_changed_op_is_found(old, new):
    assert old in OPSET
    assert list(release.changed(ABI, OPSET.replace(old, new), RELEASED))


def test_what_a_later_version_adds_changes_nothing():
    abi = copy.deepcopy(ABI)
    struct(abi, "ltc_compile_args")["fields"].append({"name": "more", "type": "size_t", "since": "1.1"})
    abi["function"].append(function(ABI, "memory_stats") | {"name": "later", "since": "1.1"})
    last = max(release.ops(OPSET))
    opset = OPSET.replace(f"  X({last}, ", f"  X({last + 1}, MINIMAL, ATEN_LATER, \"aten::later\", \"T:self\") \\\n  X({last}, ")
    assert abi != ABI and opset != OPSET
    assert list(release.changed(abi, opset, RELEASED)) == []
