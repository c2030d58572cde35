"""The clauses of the contract, sdk/manifest/clauses.toml: what they name exists, and each check of the suite holds one of them."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import ltc

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "sdk/manifest"))

import clauses as contract  # noqa: E402

CLAUSES, EXTRA = contract.read(contract.FILE.read_text())
ROWS = CLAUSES + EXTRA
SUITE = Path(ltc.__file__).parent / "bin/ltc-conformance"
TESTS = Path(ltc.__file__).parents[2] / "tests"
OPS = re.compile(r"(Ops|OpsDerived|Programs)\.")  # the tiers of ops are one clause
needs_tests = pytest.mark.skipif(not TESTS.exists(), reason="no unit tests in this build")


def lines_of(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True, env={"LTC_CACHE": "0"}).stdout.splitlines()


@pytest.fixture(scope="module")
def checks():
    return lines_of(str(SUITE), "--list")


@pytest.fixture(scope="module")
def host_tests():
    """The tests of the core's programs as googletest lists them."""
    names = []
    for program in ("base", "ir", "host", "validation", "compile", "run"):
        suite = ""
        for line in lines_of(str(TESTS / f"ltc_{program}_test"), "--gtest_list_tests"):
            name = line.split("#")[0].rstrip()
            if line.startswith("  "):
                names.append(suite + name.strip())
            else:
                suite = name
    return names


@pytest.fixture(scope="module")
def faults():
    """The seeded faults, each with the check that the suite's own test expects to fail."""
    table = (ROOT / "conformance/suite_test.cpp").read_text().split("kFaults[] = {")[1].split("};")[0]
    return dict(re.findall(r'\{"(\w+)", "([\w./]+)"\}', table))


def without_match(patterns, names):
    return [pattern for pattern in patterns if not any(contract.matches(pattern, name) for name in names)]


def test_checks_exist(checks):
    assert without_match(contract.names_of(ROWS, "checks"), checks) == []


@needs_tests
def test_host_tests_exist(host_tests):
    names = contract.names_of(CLAUSES, "host_tests")
    assert without_match([name for name in names if not name.startswith("tests/")], host_tests) == []
    for name in names:
        if name.startswith("tests/"):
            file, function = name.split("::")
            assert re.search(rf"^def {function}\(", (ROOT / file).read_text(), re.M), name


def test_faults_are_found_by_a_check_of_their_clause(faults):
    for row in ROWS:
        for fault in row.get("faults", []):
            assert fault in faults, f"{row.get('id')}: suite_test.cpp seeds no fault {fault}"
            assert any(contract.matches(check, faults[fault]) for check in row["checks"]), f"{row.get('id')}: {faults[fault]} finds {fault}"


def test_each_fault_breaks_a_clause(faults):
    assert len(faults) > 50
    assert sorted(faults.keys() - contract.names_of(ROWS, "faults")) == []


def test_each_check_below_the_ops_holds_a_clause(checks):
    below = [check for check in checks if not OPS.match(check)]
    assert len(below) > 300
    held = contract.names_of(ROWS, "checks")
    assert [check for check in below if not any(contract.matches(pattern, check) for pattern in held)] == []


def test_the_document_is_current():
    assert (ROOT / "docs/clauses.md").read_text() == contract.document(CLAUSES, EXTRA)


GOOD = '[[clause]]\nid = "a.b"\nside = "plugin"\ntext = "It does."\n'


@pytest.mark.parametrize("text, why", [
    (GOOD, "has checks, or unchecked, or missing"),
    (GOOD + 'checks = []', "checks is empty"),
    (GOOD + 'unchecked = ""', "unchecked is empty"),
    (GOOD + 'missing = false', "missing is empty"),
    (GOOD + 'checks = ["A.b"]\nunchecked = "so"', "has checks, or unchecked, or missing"),
    (GOOD + 'missing = true\nfaults = ["test_x"]', "goes without"),
    (GOOD + 'missing = true\ncolour = "red"', "unknown cells"),
    (GOOD + 'checks = ["A.b", "A.b"]', "repeats"),
    (GOOD.replace("plugin", "host") + 'checks = ["A.b"]\nhost_tests = ["A.b"]', "checks are of plugins"),
    (GOOD.replace("plugin", "both") + 'checks = ["A.b"]', "has checks and host_tests"),
    (GOOD.replace("a.b", "A") + 'missing = true', "an id is"),
    (GOOD.replace("does.", "does") + 'missing = true', "one sentence"),
    ((GOOD + "missing = true\n") * 2, "is there twice"),
    ("".join((GOOD + "missing = true\n").replace("a.b", name) for name in ("a.b", "c.d", "a.e")), "stands apart"),
    ('[[extra]]\nchecks = ["A.b"]', "has no reason"),
    ("[[clauses]]", "unknown tables"),
])
def test_bad_rows_are_refused(text, why):
    with pytest.raises(contract.Invalid, match=why):
        contract.read(text)


def test_only_stars_are_special():
    assert contract.matches("A.*/b", "A.x/y/b") and not contract.matches("A.?", "A.x") and not contract.matches("A.b", "A.bc")
