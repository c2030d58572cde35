"""Reads pairs of IDX files, the format of MNIST: images and their labels, plain or gzip-compressed."""

import gzip
import re
from pathlib import Path

import torch

_IMAGES_MAGIC = 2051
_LABELS_MAGIC = 2049


class DataError(Exception):
    """The data on disk is missing or not what its header says."""


def load(folder, split):
    """The images (uint8, N x rows x columns) and labels (int64, N) of `split`, "train" or "test", found in `folder`.

    Files are named <prefix>-images-idx3-ubyte and <prefix>-labels-idx1-ubyte, with or without .gz, where the prefix is or
    ends in "train" for the training split, "t10k" or "test" for the test split.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise DataError(f"{folder}: no such folder")
    images_file = _find(folder, split, "images-idx3-ubyte")
    labels_file = _find(folder, split, "labels-idx1-ubyte")
    images = _read(images_file, _IMAGES_MAGIC, dimensions=3)
    labels = _read(labels_file, _LABELS_MAGIC, dimensions=1).long()
    if len(images) != len(labels):
        raise DataError(f"{images_file} holds {len(images)} images, but {labels_file} {len(labels)} labels")
    return images, labels


def _find(folder, split, kind):
    prefix = "train" if split == "train" else "(t10k|test)"
    pattern = re.compile(rf"(.*-)?{prefix}-{kind}(\.gz)?")
    found = sorted(file for file in folder.iterdir() if pattern.fullmatch(file.name))
    if not found:
        raise DataError(f"{folder}: no {split} file *-{kind}")
    if len({file.name.removesuffix(".gz") for file in found}) > 1:
        raise DataError(f"{folder}: several {split} files: {', '.join(file.name for file in found)}")
    return found[0]


def _read(file, magic, dimensions):
    content = _content(file)
    header_bytes = 4 + 4 * dimensions
    if len(content) < header_bytes:
        raise DataError(f"{file}: truncated, {len(content)} bytes cannot hold a header of {header_bytes}")
    words = [int.from_bytes(content[i : i + 4], "big") for i in range(0, header_bytes, 4)]
    if words[0] != magic:
        raise DataError(f"{file}: its magic number is {words[0]}, expected {magic}")
    shape = words[1:]
    expected = header_bytes + torch.Size(shape).numel()
    if len(content) != expected:
        raise DataError(f"{file}: its header promises {expected} bytes ({' x '.join(map(str, shape))}), it has {len(content)}")
    if len(content) == header_bytes:
        raise DataError(f"{file}: it holds nothing but a header")
    return torch.frombuffer(bytearray(content), dtype=torch.uint8, offset=header_bytes).reshape(shape)


def _content(file):
    try:
        with gzip.open(file) if file.suffix == ".gz" else open(file, "rb") as stream:
            return stream.read()
    except (OSError, EOFError) as error:
        raise DataError(f"{file}: {error}") from error
