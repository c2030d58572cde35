"""Programs that run in several processes, the ranks of a process group."""

import json
import os
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

import fork_server

START = """
    import json, os, sys, warnings
    warnings.filterwarnings("ignore")
    sys.path.insert(0, {tests!r})
    import torch, torch.distributed as dist, ltc
    torch.set_num_threads(1)
    RANK, RANKS = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    dist.init_process_group({backend!r}, init_method={init!r}, rank=RANK, world_size=RANKS)
"""


def start_ranks(program, ranks, folder, backend="cpu:gloo,ltc:ltc", within=None, each=None, **env):
    """The processes. Each prints its result as its last line. `within`: commands that each rank's begins with, such as a namespace's.
    `each`: more variables of each rank."""
    start = START.format(tests=str(Path(__file__).parent), backend=backend, init=f"file://{folder}/ranks")
    source = textwrap.dedent(start) + textwrap.dedent(program)
    shared = {**os.environ, "GLOO_SOCKET_IFNAME": "lo", "WORLD_SIZE": str(ranks), **env}
    environments = [{**shared, "RANK": str(rank), **(each[rank] if each else {})} for rank in range(ranks)]
    if within is None:
        return [fork_server.Program(source, environment) for environment in environments]
    command, pipes = [sys.executable, "-c", source], {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return [subprocess.Popen([*prefix, *command], env=environment, **pipes) for prefix, environment in zip(within, environments, strict=True)]


def ended(processes, timeout=120):
    """(output, errors, exit status) of each; all are killed when one takes too long."""
    try:
        return [(*process.communicate(timeout=timeout), process.returncode) for process in processes]
    finally:
        for process in processes:
            process.kill()


def aborted_at_exit(errors):
    """Whether a process that had done all its work was aborted by its threads at the end. Ranks on the CPU with Gloo are too, now and then."""
    return "terminate called without an active exception" in errors


def run_ranks(program, ranks=2, **options):
    """The last line of each rank, which is JSON. All must end well, but for an abort behind that line."""
    with tempfile.TemporaryDirectory() as folder:
        results = ended(start_ranks(program, ranks, folder, **options))
    for out, errors, status in results:
        assert status == 0 or out and aborted_at_exit(errors), errors[-3000:]
    return [json.loads(out.splitlines()[-1]) for out, _, _ in results]
