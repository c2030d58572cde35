"""PyTorch's machinery for device-generic tests makes classes for device ltc, as upstream's own test files need it."""

import unittest

import torch
from torch.testing._internal.common_device_type import dtypes, instantiate_device_type_tests, onlyCPU, onlyNativeDeviceTypes, onlyPRIVATEUSE1, ops
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.common_utils import TestCase

import ltc  # noqa: F401


class TestGeneric(TestCase):
    @dtypes(torch.float32, torch.int64)
    def test_values_and_strides(self, device, dtype):
        x = torch.arange(6, device=device, dtype=dtype).view(2, 3)
        self.assertEqual(x.device.type, "ltc")
        self.assertEqual(x.t() + 1, torch.arange(1, 7, dtype=dtype).view(2, 3).t(), exact_device=False)
        self.assertEqual((x.t() + 1).stride(), (1, 3))

    @onlyNativeDeviceTypes
    def test_native(self, device):
        self.assertEqual(torch.zeros(2, device=device).sum().item(), 0)

    @onlyPRIVATEUSE1
    def test_outside_the_tree(self, device):
        self.assertEqual(torch.device(device).type, "ltc")

    @onlyCPU
    def test_cpu(self, device):
        raise AssertionError("not for this device")

    @ops([op for op in op_db if op.name in ("add", "sin")], allowed_dtypes=(torch.float32,))
    def test_ops(self, device, dtype, op):
        for sample in op.sample_inputs(device, dtype):
            self.assertEqual(op(sample.input, *sample.args, **sample.kwargs).device.type, "ltc")


generated = {"TestGeneric": TestGeneric}  # takes the generic class out and puts the generated one in
instantiate_device_type_tests(TestGeneric, generated, only_for="ltc")


def test_generic_class_on_the_device():
    (case,) = generated.values()
    result = unittest.TestResult()
    suite = unittest.defaultTestLoader.loadTestsFromTestCase(case)
    assert suite.countTestCases() == 7  # two dtypes, three plain, two ops
    suite.run(result)
    assert not result.errors and not result.failures, result.errors + result.failures
    assert [reason for _, reason in result.skipped] == ["Only runs on cpu"]
