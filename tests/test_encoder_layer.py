"""nn.TransformerEncoderLayer without gradients is one op, which the torchscript plugin computes its own way."""

import pytest
import torch
from torch import nn

import ltc


@pytest.mark.parametrize("activation", ["relu", "gelu"])
@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("masked", [False, True])
def test_like_eager(metrics, activation, norm_first, masked):
    layer = nn.TransformerEncoderLayer(32, 4, 64, activation=activation, norm_first=norm_first, batch_first=True).eval()
    x = torch.randn(3, 10, 32)
    padding = torch.arange(10).expand(3, 10) >= torch.tensor([[10], [7], [4]]) if masked else None
    with torch.no_grad():
        expected = layer(x, src_key_padding_mask=padding)
        layer.to("ltc")
        found = layer(x.to("ltc"), src_key_padding_mask=None if padding is None else padding.to("ltc"))
        assert masked or "_transformer_encoder_layer_fwd" in ltc.graph()
    steps = expected.shape[1]  # eager leaves out what is masked at the end of all sequences
    torch.testing.assert_close(found.cpu()[:, :steps], expected, rtol=1e-5, atol=1e-5)
    assert not [name for name in ltc.metrics.counter_names() if name.startswith("aten::")]
