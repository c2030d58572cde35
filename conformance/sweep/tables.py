"""Tables of the sweep about single operators: names are those of torch's operator database; reasons appear in the report."""

WHOLE = 2  # the first of the op table's tiers without a decomposition

# Results are memory that nobody has written: only geometry is compared.
UNINITIALISED = {"empty", "empty_like", "empty_strided", "empty_permuted", "new_empty", "new_empty_strided", "resize_", "resize_as_"}

# Both raise, but another type of exception: the CPU's kernel has a check of its own before PyTorch's common one.
OTHER_ERRORS = {"narrow_copy"}

# Which of equal elements comes first, or is the one, is unspecified; the CPU's kernels do not keep their order.
ANY_OF_EQUAL = {"argsort", "kthvalue", "sort", "topk"}

# In random layouts (LTC_TORCHSCRIPT_LAYOUTS of the plugin torchscript) the strides of a value decide in which order these add up. Eager PyTorch
# does so too, so their results need only be about as near to double precision as the CPU's.
ROUNDS_BY_LAYOUT = {
    "_unsafe_masked_index_put_accumulate": "values that fall on one element are added in the order in which they lie, each sum rounded",
    "addbmm": "each product of the batch is added to the result by the BLAS, whose kernel depends on strides",
    **dict.fromkeys(("fft.hfft2", "fft.hfftn", "fft.irfftn"), "dims are transformed in the order in which they lie"),
    "nn.functional.conv_transpose2d": "half-type products of the BLAS, whose kernel depends on strides",
}

# Why some calls of an op that programs do hold run on the CPU, by ATen's name without overload; of all other ops the op table says it.
COMPLEX = "Arithmetic of complex numbers, or complex numbers of more or less than 64 bits: the minimal opset has none."
SOME_CALLS = {
    "aten::index": "Indexing by a mask: the result's size depends on values.",
    "aten::index_put": "Writing by a mask as many values as it holds at places: how many depends on values.",
    **dict.fromkeys(("aten::_linalg_solve_ex", "aten::_to_copy", "aten::bmm", "aten::div", "aten::mm", "aten::mul", "aten::view"), COMPLEX),
}


def reasons():
    """Why an op runs on the CPU and not on the plugin: by ATen's name, without overload."""
    from ltc import _C  # takes seconds; --help does not need it

    rows = [(name.partition(".")[0], why) for _, name, _, tier, why in _C.op_rows() if tier >= WHOLE]
    return {name: " ".join(dict.fromkeys(why for other, why in rows if other == name)) for name, _ in rows} | SOME_CALLS
