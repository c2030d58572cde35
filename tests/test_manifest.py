"""The ABI's manifest is complete, agrees with the headers, and what is written from it is current. Each check finds a seeded fault."""

import copy
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "sdk/manifest"))

import generate  # noqa: E402
import header  # noqa: E402
import manifest  # noqa: E402
import minors  # noqa: E402

ABI = manifest.read()
TEXTS = header.read(ABI)


def test_headers_and_files_are_current():
    assert list(generate.differences(ABI, TEXTS)) == []
    for place, text in generate.files(ABI, TEXTS).items():
        assert (ROOT / place).read_text() == text, f"{place} is out of date: run sdk/manifest/generate.py"


def entries():
    for kind in manifest.CELLS:
        for index, entry in enumerate(ABI[kind]):
            for cell in entry:
                yield kind, index, cell


@pytest.mark.parametrize("fault", ["absent", "empty"])
def test_each_cell_is_asked_for(fault):
    for kind, index, cell in entries():
        abi = copy.deepcopy(ABI)
        if fault == "absent":
            del abi[kind][index][cell]
        else:
            abi[kind][index][cell] = ""
        if cell != "fields" and cell != "params" or fault == "absent":
            assert list(manifest.empty_cells(abi)), f"{kind} {index}: nobody misses {cell}"


def test_each_cell_of_a_pointer_is_asked_for():
    for index, function in enumerate(ABI["function"]):
        for at, param in enumerate(function["params"]):
            for cell in param:
                abi = copy.deepcopy(ABI)
                del abi["function"][index]["params"][at][cell]
                if cell != "type":
                    assert list(manifest.empty_cells(abi)), f"{function['name']}({param['name']}): nobody misses {cell}"


@pytest.mark.parametrize("old, new", [
    ("  uint32_t flags;        /* there are none", "  uint32_t more;\n  uint32_t flags;        /* there are none"),
    ("  uint64_t run_id;", "  uint64_t run;"),
    ("  LTC_OUT_OF_RANGE = 10", "  LTC_LATE = 11,\n  LTC_OUT_OF_RANGE = 10"),
    ("#define LTC_FOREVER", "#define LTC_NEVER 0u\n#define LTC_FOREVER"),
    ("Codes: DATA_CORRUPT, UNSUPPORTED", "Codes: DATA_CORRUPT"),
    ("  ltc_status*(LTC_CALL* memory_stats)", "  ltc_status*(LTC_CALL* memory_statistics)"),
])
def test_a_name_on_one_side_is_found(old, new):
    text = TEXTS["ltc/plugin.h"]
    assert old in text
    assert list(generate.differences(ABI, TEXTS | {"ltc/plugin.h": text.replace(old, new)}))


@pytest.mark.parametrize("old, new", [
    ("", ""),
    ("  uint32_t rank;\n", "  int32_t rank;\n"),
    ("  uint32_t effort;", "  uint64_t effort;"),
    ("  ltc_dtype dtype;\n  uint32_t rank;", "  uint32_t rank;\n  ltc_dtype dtype;"),
    ("  LTC_U4_X2 = 24", "  LTC_U4_X2 = 25"),
    ("ltc_claims_args* args, uint32_t* cluster", "ltc_claims_args* args, int32_t* cluster"),
    ("ltc_status*(LTC_CALL* event_wait)(ltc_event* event, uint64_t timeout_ns",
     "ltc_status*(LTC_CALL* event_wait)(ltc_event* event, int64_t timeout_ns"),
    ("  uint64_t limit_bytes;\n  uint64_t largest_free_bytes;", "  uint64_t largest_free_bytes;\n  uint64_t limit_bytes;"),
    ("  uint64_t largest_free_bytes;\n", "  uint64_t largest_free_bytes;\n  uint64_t more;\n"),
    ("  size_t option_count;\n  const ltc_option* const* options;\n", ""),
])
def test_the_compiler_finds_another_type_place_or_value(tmp_path, old, new):
    """The first case, no change, compiles; each other one does not."""
    include = tmp_path / "include"
    shutil.copytree(ROOT / "sdk/include", include)
    text = (include / "ltc/plugin.h").read_text()
    assert old in text
    (include / "ltc/plugin.h").write_text(text.replace(old, new))
    command = ["c++", "-std=c++11", "-fsyntax-only", f"-I{include}", str(ROOT / "sdk/tests/layout_test.cpp")]
    assert (subprocess.run(command, capture_output=True).returncode == 0) == (old == new)


def compiles(release):
    """Whether the headers of a rehearsed version have the layout of it and of those before."""
    command = ["cc", "-std=c99", "-fsyntax-only", f"-I{release}", "-x", "c", str(release / "layout.h")]
    return subprocess.run(command, capture_output=True).returncode == 0


@pytest.mark.parametrize("old, new", [
    ("", ""),
    ("  size_t output_count;       /* of the graph */\n", "  size_t output_count;       /* of the graph */\n  size_t early;\n"),
    ("  size_t wait_count; ", "  uint64_t more;\n  size_t wait_count; "),
    ("  LTC_DEVICE_WAITS = 4u", "  LTC_DEVICE_WAITS = 8u"),
    ("  uint64_t run_id; ", "  uint32_t run_id; "),
])
def test_a_minor_version_only_appends(tmp_path, old, new):
    """The first case is the rehearsed version as it is; each other one breaks plugins of an older one."""
    minors.write(tmp_path)
    path = tmp_path / "1.2/ltc/plugin.h"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    assert compiles(tmp_path / "1.2") == (old == new)


def test_a_minor_version_leaves_frozen_structs_alone():
    minor = {"abi": "1.1", "struct": [{"name": "ltc_string", "text": "  size_t more;", "fields": [{"name": "more", "type": "size_t"}]}]}
    with pytest.raises(manifest.Error, match="ltc_string is frozen"):
        minors.extended(ABI, TEXTS["ltc/plugin.h"], minor)
