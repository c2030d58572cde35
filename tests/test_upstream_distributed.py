"""Some of PyTorch's own tests of process groups, with backend ``ltc``. ``upstream_distributed.py`` runs all of them."""

import pytest
from upstream_distributed import run_part

PASSING = {
    2: ["test_get_backend", "test_all_reduce_sum_async", "test_all_to_all_single_unequal_split_cuda", "test_batch_isend_irecv_gloo_tags",
        "test_barrier_timeout_full_group", "test_DistributedDataParallelCPU", "test_DistributedDataParallel_SyncBatchNorm", "test_ddp_hook_parity_powerSGD",
        "test_ddp_uneven_input_join_disable"],
    4: ["test_all_gather_group", "test_gather_object_subgroup"],
}  # fmt: skip


@pytest.mark.parametrize("ranks", PASSING)
def test_upstreams_own_pass(ranks):
    rows = run_part("ltc", ranks, PASSING[ranks])
    assert {name: (row["result"], row["reason"]) for name, row in rows.items()} == {name: ("passed", "") for name in PASSING[ranks]}
