"""What the sweep knows of single operators: names are those of torch's operator database; reasons appear in the report."""

# Results are memory that nobody has written: only geometry is compared.
UNINITIALISED = {"empty", "empty_like", "empty_strided", "empty_permuted", "new_empty", "new_empty_strided", "resize_", "resize_as_"}

# Both raise, but another type of exception: the CPU's kernel has a check of its own before PyTorch's common one.
OTHER_ERRORS = {"narrow_copy"}

# Which of equal elements comes first, or is the one, is unspecified; the CPU's kernels do not keep their order.
ANY_OF_EQUAL = {"argsort", "kthvalue", "sort", "topk"}

SIZE = "the result's size depends on values"

# Why an op runs on the CPU at once and not in a program of the plugin: by ATen's name, without overload.
FALLBACKS = {
    "aten::_ctc_loss": "the result's size depends on lengths given as tensors",
    "aten::_unique2": SIZE,
    "aten::bincount": SIZE,
    "aten::binomial": "drawn by rejection",
    "aten::index": "indexing by a mask: " + SIZE,
    "aten::linalg_lstsq": "the sizes of two results depend on the matrix's rank",
    "aten::masked_select": SIZE,
    "aten::nonzero": SIZE,
    "aten::poisson": "drawn by rejection",
    "aten::repeat_interleave": SIZE,
    "aten::segment_reduce": "the kernel checks the values of the lengths, which depend on each other",
    "aten::unique_consecutive": SIZE,
    "aten::unique_dim": SIZE,
}
