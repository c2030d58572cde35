"""A program for ranks: all collectives in all their forms, on the device and with Gloo on the CPU, bit by bit equal."""

COLLECTIVES = """
    def all_forms(device, dtype):
        def tensor(*sizes):
            generator = torch.Generator().manual_seed(7 * RANK + len(results))
            return torch.randint(-5, 6, sizes, generator=generator).to(dtype).to(device)

        def empty(*sizes):
            return torch.zeros(sizes, dtype=dtype, device=device)

        results = []
        for op in (dist.ReduceOp.SUM, dist.ReduceOp.PRODUCT, dist.ReduceOp.MIN, dist.ReduceOp.MAX):
            x = tensor(3, 4)
            dist.all_reduce(x, op)
            results.append(x)
        x = tensor(4, 3).t()  # not row-major
        dist.all_reduce(x)
        x[1].mul_(2)
        results.append(x)
        many = [tensor(2), tensor(3)]
        dist.all_reduce_coalesced(many)
        results += many
        for root in range(RANKS):
            x = tensor(2, 3)
            dist.broadcast(x, root)
            results.append(x)
            x = tensor(5)
            dist.reduce(x, root)
            if root == RANK:
                results.append(x)
            parts = [tensor(2) for _ in range(RANKS)]
            x = empty(2)
            dist.scatter(x, parts if root == RANK else None, root)
            results.append(x)
            gathered = [empty(3) for _ in range(RANKS)] if root == RANK else None
            dist.gather(tensor(3), gathered, root)
            results += gathered or []
        gathered = [empty(2, 2) for _ in range(RANKS)]
        dist.all_gather(gathered, tensor(2, 2))
        results += gathered
        x = empty(2 * RANKS, 3)
        dist.all_gather_into_tensor(x, tensor(2, 3))
        results.append(x)
        x = empty(2, 3)
        dist.reduce_scatter_tensor(x, tensor(2 * RANKS, 3))
        results.append(x)
        x = empty(2)
        dist.reduce_scatter(x, [tensor(2) for _ in range(RANKS)])
        results.append(x)
        x = empty(RANKS, 2)
        dist.all_to_all_single(x, tensor(RANKS, 2))
        results.append(x)
        rows = [1 + (RANK + rank) % 3 for rank in range(RANKS)]  # what two ranks send each other is equal
        x = empty(sum(rows), 2)
        dist.all_to_all_single(x, tensor(sum(rows), 2), rows, rows)
        results.append(x)
        if device == "ltc":  # Gloo has none of lists
            parts = [empty(2) for _ in range(RANKS)]
            dist.all_to_all(parts, [torch.full((2,), 10 * RANK + rank).to(dtype).to(device) for rank in range(RANKS)])
            assert [part[0].item() for part in parts] == [10 * rank + RANK for rank in range(RANKS)]
        return [result.cpu() for result in results]

    for dtype in (torch.float32, torch.float64, torch.int64, torch.bfloat16):
        expected, results = all_forms("cpu", dtype), all_forms("ltc", dtype)
        assert len(expected) == len(results)
        for number, (one, other) in enumerate(zip(expected, results)):
            assert torch.equal(one, other), (dtype, number, one, other)
    print(json.dumps(ltc.metrics.fallbacks()))
"""
