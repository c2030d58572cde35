"""The files of the package: where its libraries look for others, and whose code they contain."""

import importlib.metadata
import re
import shlex
import subprocess
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import ltc

PACKAGE = Path(ltc.__file__).parent
BUILD = PACKAGE.parent.parent
ROOT = Path(__file__).parent.parent

# By the folders of headers and the names of static libraries. The last ones are there wherever the package runs.
ORIGINS = {
    "LLVM and Clang": r"/(llvm|llvm-c|clang)(-\d+)?/|/lib(LLVM|clang)\w*\.a$",
    "spdlog": r"/spdlog/",
    "fmt": r"/include/fmt/|/libfmt\.a$",
    "Boost": r"/boost/|/libboost\w*\.a$",
    "nlohmann/json": r"/include/nlohmann/",
    "pybind11": r"/pybind11/",
    "PyTorch": r"/torch/include/(ATen|c10|torch|caffe2)/",
    "Kineto": r"/torch/include/kineto/",
    "GoogleTest": r"/(gtest|gmock)/|/lib(gtest|gmock)\w*\.a$",
    "OpenCL": r"/CL/",
    "CUDA": r"/nvidia/|/(cuda|nvrtc)\.h$",
    "Highway": r"/include/hwy/",
    "SLEEF": r"/sleef\.h$",
    "the system": r"/include/c\+\+/|/lib/gcc/|-linux-gnu/|/include/(linux|asm-generic|rpc)/|/include/([\w-]+|arpa/\w+|net\w*/\w+)\.h$",
    "Python": r"/include/python3[^/]*/",
}


def elf_files():
    return sorted(path for path in PACKAGE.rglob("*") if path.is_file() and path.open("rb").read(4) == b"\x7fELF")


@pytest.mark.parametrize("path", elf_files(), ids=lambda path: path.name)
def test_no_library_is_looked_for_in_the_current_folder(path):
    dynamic = subprocess.run(["readelf", "-dW", path], capture_output=True, text=True, check=True).stdout
    for folders in re.findall(r"\((?:RUNPATH|RPATH)\).*\[(.*)\]", dynamic):
        for folder in folders.split(":"):
            assert folder == "$ORIGIN" or folder.startswith(("/", "$ORIGIN/")), f"{path}: [{folders}]"


def ninja(*args):
    return subprocess.run(["ninja", "-C", BUILD, *args], capture_output=True, text=True, check=True).stdout.splitlines()


def linked_into(target):
    """The objects and static libraries that the linker was given for it; static libraries of the build as their objects."""
    inputs = []
    for line in ninja("-t", "query", target):
        path = line.strip().removeprefix("| ")
        if line.startswith("  outputs:"):
            break
        if line.startswith("    ") and not path.startswith("|"):
            inputs += linked_into(path) if path.endswith(".a") and not path.startswith("/") else [path]
    return inputs


def headers_by_object():
    """The files that each object was compiled from, as the compiler listed them."""
    result, current = {}, None
    for line in ninja("-t", "deps"):
        if line and not line.startswith(" "):
            current = result.setdefault(line.split(":")[0], [])
        elif line:
            current.append(line.strip())
    return result


def origin(path):
    for name, pattern in ORIGINS.items():
        if re.search(pattern, path):
            return name
    return None


@pytest.mark.skipif(not (BUILD / "build.ninja").exists(), reason="only a build knows what it was made of")
def test_third_party_names_all_whose_code_is_in_the_package():
    headers, found, strange = headers_by_object(), {}, set()
    for library in (path for path in elf_files() if not path.name.endswith("_test")):
        made_of = [path for path in linked_into(str(library.relative_to(BUILD))) if path.endswith((".o", ".a"))]
        for path in made_of + [header for item in made_of for header in headers.get(item, [])]:
            if path.startswith("/") and ("site-packages" in path or not path.startswith(f"{ROOT}/")):
                name = origin(path)
                found.setdefault(name, set()).add(library.name) if name else strange.add(path)
    assert not strange, "of software that ORIGINS does not know: " + ", ".join(sorted(strange)[:20])
    notices = (ROOT / "THIRD-PARTY").read_text()
    sections = re.findall(r"={80}\n(.+)\n={80}\n", notices)
    assert len(found) > 5
    for name in found.keys() - {"the system", "Python"}:
        section = next((section for section in sections if name in section), None)
        assert section, f"THIRD-PARTY says nothing of {name}, which is in {', '.join(sorted(found[name]))}"
        text = notices.split(f"\n{section}\n", 1)[1].split("=" * 80 + "\n", 2)[1]
        for library in found[name]:
            assert library in text, f"THIRD-PARTY does not say that {library} contains {name}"


def test_the_notices_are_in_the_wheel():
    pyproject = (ROOT / "pyproject.toml").read_text()
    assert 'license-files = ["LICENSE", "THIRD-PARTY"]' in pyproject


def pinned():
    """Name and exact version of each line of constraints.txt."""
    lines = [line for line in (ROOT / "constraints.txt").read_text().splitlines() if not line.startswith("#")]
    pins = [re.fullmatch(r"([A-Za-z0-9._-]+)==([A-Za-z0-9.]+)(?: ; .*)?", line).groups() for line in lines]
    return {canonicalize_name(name): version for name, version in pins}


def test_all_that_dev_installs_has_an_exact_version():
    versions = pinned()
    listed = re.search(r"^pip_packages=\((.*?)\)$", (ROOT / "dev").read_text(), re.MULTILINE | re.DOTALL).group(1)
    requirements = [Requirement(text) for text in shlex.split(listed)]
    installed = [one.name for one in requirements if one.marker is None or one.marker.evaluate()]
    assert installed and set(installed) <= versions.keys()
    if importlib.metadata.version("torch").partition("+")[0] != versions["torch"]:
        pytest.skip("another PyTorch than constraints.txt names brings packages that it does not name")
    for name in installed:
        for requirement in map(Requirement, importlib.metadata.requires(name) or []):
            if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
                assert canonicalize_name(requirement.name) in versions or "==" in str(requirement.specifier), f"{name} brings {requirement}"


def test_the_wheel_is_built_with_the_headers_that_dev_installs():
    versions, pyproject = pinned(), (ROOT / "pyproject.toml").read_text()
    for name in "torch", "nvidia-cuda-runtime", "nvidia-cuda-nvrtc", "xla-cpu-pjrt":
        assert f"{name}=={versions[name]}" in pyproject


# Runtimes of archives, without symbols and without plugins: the most bytes.
RUNTIMES = {"libltc_runtime.so": 1_800_000, "libltc_runtime_lean.so": 1_000_000}


@pytest.mark.parametrize("name", RUNTIMES)
def test_size_of_the_runtime(tmp_path, name):
    runtime = PACKAGE / name
    if "-O3" not in " ".join(ninja("-t", "commands", str(runtime.relative_to(BUILD)))):
        pytest.skip("the build is not optimised")
    subprocess.run(["strip", "-o", tmp_path / name, runtime], check=True)
    assert (tmp_path / name).stat().st_size <= RUNTIMES[name]
