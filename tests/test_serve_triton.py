"""ltc serve with Triton's own client: pip install "tritonclient[http]". ./dev does not install it."""

import numpy
import pytest
import torch

import ltc
from serve_client import serving

triton = pytest.importorskip("tritonclient.http")

DATATYPES = {"bool": "BOOL", "uint8": "UINT8", "int64": "INT64", "float16": "FP16", "float32": "FP32", "float64": "FP64"}


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    path = tmp_path_factory.mktemp("serve") / "net.ltc"
    shapes = {"x": {0: "batch"}, "y": {0: "batch"}}
    exported = ltc.export(lambda x, y: {"sum": x + y, "negative": -x}, (torch.randn(4, 2), torch.randn(4, 2)), dynamic_shapes=shapes, name="forward")
    for dtype in DATATYPES:
        exported.add(lambda x: x.flip(0), (torch.zeros(3, dtype=getattr(torch, dtype)),), name=dtype)
    exported.save(path)
    with serving(path, backend="torchscript") as process:
        yield process


@pytest.fixture
def client(server):
    with triton.InferenceServerClient(f"127.0.0.1:{server.port}", concurrency=4) as one:
        yield one


def inputs_of(binary, **arrays):
    given = []
    for name, array in arrays.items():
        given.append(triton.InferInput(name, list(array.shape), DATATYPES[array.dtype.name]))
        given[-1].set_data_from_numpy(array, binary_data=binary)
    return given


def x_and_y():
    generator = numpy.random.default_rng(0)
    return {name: generator.standard_normal((3, 2), dtype=numpy.float32) for name in "xy"}


def test_health_and_metadata(client):
    assert client.is_server_live() and client.is_server_ready() and client.is_model_ready("net") and client.is_model_ready("net", "1")
    assert not client.is_model_ready("other")
    assert client.get_server_metadata()["extensions"] == ["binary_tensor_data"]
    metadata = client.get_model_metadata("net")
    assert metadata["name"] == "net" and metadata["versions"] == ["1"]
    assert metadata["inputs"] == [{"name": name, "datatype": "FP32", "shape": [-1, 2]} for name in "xy"]
    assert [output["datatype"] for output in metadata["outputs"]] == ["FP32", "FP32"]


@pytest.mark.parametrize("binary_outputs", [True, False])
@pytest.mark.parametrize("binary_inputs", [True, False])
@pytest.mark.parametrize("version", ["", "1"])
def test_both_forms_of_tensors(client, binary_inputs, binary_outputs, version):
    arrays = x_and_y()
    names = [output["name"] for output in client.get_model_metadata("net")["outputs"]]
    wanted = [triton.InferRequestedOutput(name, binary_data=binary_outputs) for name in names]
    result = client.infer("net", inputs_of(binary_inputs, **arrays), model_version=version, outputs=wanted, request_id="7")
    numpy.testing.assert_array_equal(result.as_numpy(names[0]), arrays["x"] + arrays["y"])
    numpy.testing.assert_array_equal(result.as_numpy(names[1]), -arrays["x"])
    response = result.get_response()
    assert response["id"] == "7" and response["model_name"] == "net" and response["model_version"] == "1"


def test_outputs_that_are_named(client):
    arrays = x_and_y()
    names = [output["name"] for output in client.get_model_metadata("net")["outputs"]]
    result = client.infer("net", inputs_of(True, **arrays), outputs=[triton.InferRequestedOutput(names[1])])
    assert result.as_numpy(names[0]) is None
    numpy.testing.assert_array_equal(result.as_numpy(names[1]), -arrays["x"])
    every = client.infer("net", inputs_of(True, **arrays))  # without names: all
    assert [output["name"] for output in every.get_response()["outputs"]] == names


@pytest.mark.parametrize("binary", [True, False])
@pytest.mark.parametrize("dtype", DATATYPES)
def test_datatypes(client, dtype, binary):
    if dtype == "float16" and not binary:
        pytest.skip("JSON cannot give it")
    array = numpy.array([0, 1, 3]).astype(dtype)
    (name,) = (output["name"] for output in client.get_model_metadata(f"net.{dtype}")["outputs"])
    result = client.infer(f"net.{dtype}", inputs_of(binary, x=array), outputs=[triton.InferRequestedOutput(name, binary_data=binary)])
    found = result.as_numpy(name)
    assert found.dtype == array.dtype
    numpy.testing.assert_array_equal(found, array[::-1])


def test_many_at_once(client):
    arrays = x_and_y()
    (name, _) = (output["name"] for output in client.get_model_metadata("net")["outputs"])
    waiting = [client.async_infer("net", inputs_of(True, x=arrays["x"] + i, y=arrays["y"])) for i in range(32)]
    for i, answer in enumerate(waiting):
        numpy.testing.assert_array_equal(answer.get_result().as_numpy(name), arrays["x"] + i + arrays["y"])


def test_errors_are_the_clients_exceptions(client):
    with pytest.raises(triton.InferenceServerException, match="there is no model other"):
        client.infer("other", inputs_of(True, **x_and_y()))
    with pytest.raises(triton.InferenceServerException, match="input y is missing"):
        client.infer("net", inputs_of(True, x=x_and_y()["x"]))
    with pytest.raises(triton.InferenceServerException, match="there is no output z"):
        client.infer("net", inputs_of(True, **x_and_y()), outputs=[triton.InferRequestedOutput("z")])


@pytest.mark.parametrize("algorithm", ["gzip", "deflate"])
def test_compressed_requests_are_refused(client, algorithm):
    with pytest.raises(triton.InferenceServerException, match="Content-Encoding"):
        client.infer("net", inputs_of(True, **x_and_y()), request_compression_algorithm=algorithm)


def test_compressed_answers_are_not_needed(client):
    arrays = x_and_y()
    result = client.infer("net", inputs_of(True, **arrays), response_compression_algorithm="gzip")
    numpy.testing.assert_array_equal(result.as_numpy(client.get_model_metadata("net")["outputs"][1]["name"]), -arrays["x"])
