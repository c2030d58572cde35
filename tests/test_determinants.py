import pytest
import torch

import ltc  # noqa: F401


@pytest.mark.parametrize("lay_out", [lambda x: x, lambda x: x.mT, lambda x: (x * 2).mT.contiguous(), lambda x: x[:, ::2, ::2]])
@pytest.mark.parametrize("function", [torch.linalg.det, lambda a: torch.linalg.slogdet(a)[1], lambda a: torch.logdet(a @ a.mT)])
def test_gradients_of_determinants(function, lay_out):
    x = torch.randn(3, 4, 4, dtype=torch.float64)
    gradients = []
    for device in ("cpu", "ltc"):
        matrix = lay_out(x.to(device)).detach().requires_grad_()
        function(matrix).sum().backward()
        gradients.append(matrix.grad.cpu())
    assert torch.allclose(*gradients)
