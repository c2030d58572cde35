#!/usr/bin/env python3
"""The training of train_torchrun.py in the workers of Ray Train, with Ray's checkpoints and restarts."""

import argparse
import os
import tempfile
from pathlib import Path

import ray
import ray.train
import torch
from ray.train.torch import TorchConfig, TorchTrainer

from train_torchrun import Training, add_arguments, die_at

STATE = "state.pt"


def last_checkpoint():
    """The state to begin from, or None."""
    checkpoint = ray.train.get_checkpoint()
    if checkpoint is None:
        return None
    with checkpoint.as_directory() as folder:
        return torch.load(Path(folder) / STATE, map_location="cpu", weights_only=True)


def report(training, rank):
    """Hands the epoch's results to Ray, which copies rank 0's checkpoint into the run's storage."""
    metrics = {"epoch": training.epoch, "losses": training.losses}
    with tempfile.TemporaryDirectory() as folder:
        if rank == 0:
            torch.save(training.state(), Path(folder) / STATE)
        ray.train.report(metrics, checkpoint=ray.train.Checkpoint.from_directory(folder) if rank == 0 else None)


def die_with_a_checkpoint(step):
    """Waits until Ray has registered the last checkpoint: a worker that dies before costs the epoch too."""
    if step == 0:
        ray.train.get_all_reported_checkpoints()
    die_at(step)


def train_worker(config):
    context = ray.train.get_context()
    rank, ranks = context.get_world_rank(), context.get_world_size()
    training = Training(config["device"])
    state = last_checkpoint()
    if state is not None:
        training.load_state(state)
    while training.epoch < config["epochs"]:
        is_killed = training.epoch + 1 == config["kill_in_epoch"] and rank == ranks - 1 and state is None
        training.run_epoch(die_with_a_checkpoint if is_killed else lambda step: None)
        report(training, rank)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    add_arguments(parser)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--storage", metavar="DIR", type=Path, required=True, help="folder of the run's checkpoints")
    args = parser.parse_args()

    # Ray makes the process group before the worker imports anything of ours. With this variable `import torch` makes the device known.
    environment = {"LTC_BACKEND": os.environ.get("LTC_BACKEND", "torchscript")}
    ray.init(num_cpus=args.workers, include_dashboard=False, runtime_env={"env_vars": environment})
    result = TorchTrainer(
        train_worker,
        train_loop_config={"device": args.device, "epochs": args.epochs, "kill_in_epoch": args.kill_in_epoch},
        torch_config=TorchConfig(backend="cpu:gloo,ltc:ltc"),
        scaling_config=ray.train.ScalingConfig(num_workers=args.workers),
        run_config=ray.train.RunConfig(storage_path=str(args.storage.resolve()), failure_config=ray.train.FailureConfig(max_failures=1)),
    ).fit()
    losses = result.metrics["losses"]
    print(f"epoch {result.metrics['epoch']}/{args.epochs}  loss {losses[-1]:.4f}")
    if args.losses:
        Path(args.losses).write_text("".join(f"{loss!r}\n" for loss in losses))


if __name__ == "__main__":
    main()
