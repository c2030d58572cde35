"""The order of folders: no cycles of includes, PyTorch's headers where they belong, files and folders of a size to read."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SOURCES = [path for top in ("core", "plugins", "conformance", "sdk", "samples", "fuzz") for path in (ROOT / top).rglob("*")
           if path.suffix in (".h", ".hpp", ".cpp", ".c", ".inc")]
TORCH = ("core/torch", "core/python", "plugins/torchscript", "samples/digits_cpp", "bench/serving_torch.cpp")
TABLES = ("op_table.inc", "plugin.h", "opset.h")  # may be long
INCLUDE = re.compile(r'^\s*#\s*include\s+["<]([^">]+)[">]', re.M)


def is_test(path):
    return path.stem.endswith("_test") or "testing" in path.parts or "tests" in path.parts


def includes(path):
    for name in INCLUDE.findall(path.read_text(errors="replace")):
        places = [path.parent / name, ROOT / name, ROOT / "plugins" / name, ROOT / "sdk/include" / name]
        yield from [place.resolve() for place in places if place.is_file()][:1]


def rings(files, key):
    """Groups of at least two keys, of folders or of a header with its source, that reach each other."""
    edges = {}
    for path in files:
        edges.setdefault(key(path), set()).update(map(key, includes(path)))
    reach = {}
    for node in edges:
        seen, todo = set(), list(edges[node])
        while todo:
            if (other := todo.pop()) not in seen:
                seen.add(other)
                todo += edges.get(other, ())
        reach[node] = seen
    groups = {frozenset([node, *(other for other in seen if node in reach.get(other, ()))]) for node, seen in reach.items()}
    return [sorted(map(str, group)) for group in groups if len(group) > 1]


def test_no_rings():
    files = [path for path in SOURCES if not is_test(path)]
    assert rings(files, lambda path: path.parent) == []
    assert [ring for ring in rings(files, lambda path: path.parent / path.name.split(".")[0]) if len(ring) > 2] == []


def test_places_and_sizes():
    texts = {path.relative_to(ROOT).as_posix(): path.read_text(errors="replace") for path in SOURCES}
    assert [place for place, text in texts.items() if re.search(r"#include <(torch|ATen|c10)/", text) and not place.startswith(TORCH)] == []
    assert [place for place, text in texts.items() if text.count("\n") > 500 and not place.endswith(TABLES) and not is_test(Path(place))] == []
    assert [folder for folder in {path.parent for path in SOURCES} if sum(file.is_file() for file in folder.iterdir()) > 45] == []


def test_a_ring_is_found(tmp_path):
    for name, other in ("one/a", "two/b"), ("two/b", "one/a"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / f"{name}.h").write_text(f'#include "../{other}.h"\n')
    assert len(rings(list(tmp_path.rglob("*.h")), lambda path: path.parent)) == 1
