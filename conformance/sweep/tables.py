"""What the sweep knows of single operators. Names are those of torch's operator database; reasons appear in the report."""

# Results are memory that nobody has written: only geometry is compared.
UNINITIALISED = {"empty", "empty_like", "empty_strided", "empty_permuted", "new_empty", "new_empty_strided", "resize_", "resize_as_"}

# Cases that cannot be had, as (operator, mode or "*", dtype or "*"): reason. They are not counted; one that passes is a failure.
ALLOWED = {}
