"""Which kernels the steps of workloads spend the GPU's time in: `gpu_kernels.py SIDE WORKLOADS`, such as `ltc gpt2,topk` or `cuda gpt2`."""

import os
import sys

STEPS = 5


def main():
    side_name, names = sys.argv[1], sys.argv[2].split(",")
    if side_name != "ltc":
        os.environ["LTC_BACKEND"] = ""  # as in run.py
    import torch
    from torch.autograd import DeviceType
    from torch.profiler import ProfilerActivity, profile

    from sides import SIDES, Device
    from worker import Steps
    from workloads import WORKLOADS

    torch.zeros(1, device="cuda")  # the profiler sees CUDA where PyTorch has begun to use it
    device = Device(next(side for side in SIDES if side.name == side_name))
    for workload in (row for row in WORKLOADS if row.name in names):
        steps = Steps(workload, device)
        steps.warm_up()
        steps.block()
        steps._count = STEPS
        with profile(activities=[ProfilerActivity.CUDA]) as profiler:
            seconds = steps.block()
        kernels = [row for row in profiler.key_averages() if row.device_type != DeviceType.CPU]  # PrivateUse1 where ltc is known
        kernels.sort(key=lambda row: -row.self_device_time_total)
        total = sum(row.self_device_time_total for row in kernels)
        print(f"{workload.name} on {side_name}: {seconds * 1e3:.2f} ms a step under the profiler, {total / 1e3 / STEPS:.2f} ms of them in kernels")
        for row in kernels[:16]:
            print(f"  {row.self_device_time_total / total:6.1%} {row.self_device_time_total / 1e3 / STEPS:8.3f} ms {row.count / STEPS:6.1f} x  {row.key[:110]}")


main()
