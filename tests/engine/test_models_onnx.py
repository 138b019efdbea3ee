"""Files of other frameworks behind the interface of our own networks."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from graphs import behind, constant, dense, model, node, tensor
from onnx import ModelProto
from safetensors.numpy import load_file

from engine.errors import NetworkUnfit
from engine.measure import main
from engine.onnx_session import name
from engine.run import run
from engine.weights import load_network
from engine.work import CardsInput, ModelInput
from flashcards.contract import capsule
from flashcards.contract.architecture import architecture_spec
from flashcards.contract.image import ImageShape
from flashcards.contract.specs import job_spec

FILES = Path(__file__).parent.parent / "fixtures" / "onnx"
CPU = torch.device("cpu")
VECTOR = {"family": "onnx", "layout": "nd", "image": "x", "bottleneck": "z", "answer": "y", "latent": [3]}
READ = {
    "torch_conv": {"layout": "nchw", "image": "x", "bottleneck": "tanh", "answer": "conv2d_3", "latent": [4, 2, 2]},
    "torch_dense": {
        "layout": "nchw",
        "image": "image",
        "bottleneck": "/encoder/encoder.2/Gemm_output_0",
        "answer": "again",
        "latent": [10],
    },
    "torch_fixed_batch": {
        "layout": "nchw",
        "image": "x",
        "bottleneck": "linear_1",
        "answer": "view_1",
        "latent": [10],
        "batch": 1,
    },
    "keras_conv": {
        "layout": "nhwc",
        "image": "keras_tensor_13",
        "bottleneck": "sequential_2_1/sequential_1/code_1/BiasAdd:0",
        "answer": "Identity:0",
        "latent": [12],
    },
    "sklearn_mlp": {
        "layout": "nd",
        "image": "X",
        "bottleneck": "next_activations1",
        "answer": "add_result3",
        "latent": [9],
    },
}


def architecture(**fields):
    return architecture_spec.validate_python({"family": "onnx", "opset": 17, "weights": 36, "largest": 64} | fields)


def fixture(name: str, **changes) -> ModelInput:
    return ModelInput(
        path=FILES / f"{name}.onnx",
        digest="m",
        architecture=architecture(**READ[name] | changes),
        input=ImageShape(1, 64, 1) if name == "sklearn_mlp" else ImageShape(8, 8, 1),
        range=(0.0, 1.0),
    )


@pytest.fixture
def as_model(tmp_path):
    def write(made: ModelProto, **fields) -> ModelInput:
        path = tmp_path / "model.onnx"
        path.write_bytes(made.SerializeToString())
        told = architecture(**VECTOR | fields)
        return ModelInput(path=path, digest="m", architecture=told, input=ImageShape(1, 6, 1), range=(0.0, 1.0))

    return write


@pytest.mark.parametrize("name", READ)
@pytest.mark.parametrize("count", [1, 5, 12])
def test_it_answers_as_its_framework_does(name, count):
    network, held = load_network(fixture(name), CPU), load_file(FILES / f"{name}.safetensors")
    x_BCHW = torch.from_numpy(held["x"][:count]).permute(0, 3, 1, 2)
    z = network.encoder(x_BCHW)
    y_BCHW = network.decoder(z)
    np.testing.assert_allclose(y_BCHW.permute(0, 2, 3, 1).numpy(), held["y"][:count], atol=1e-5)
    torch.testing.assert_close(network(x_BCHW), y_BCHW, atol=0, rtol=0)
    if "z" in held:
        np.testing.assert_allclose(z.numpy(), held["z"][:count], atol=1e-5)


def test_the_same_answers_whatever_lies_in_memory():
    network = load_network(fixture("keras_conv"), CPU)
    x_BCHW = torch.rand(7, 1, 8, 8, generator=torch.Generator().manual_seed(0))
    assert torch.equal(network(x_BCHW), network(x_BCHW.contiguous(memory_format=torch.channels_last)))


def test_a_decoder_that_asks_the_image_for_its_shape(as_model):
    """The batch comes from the latent, what else there is was the same for every batch."""
    made = behind(
        dense(),
        node("Shape", ["x"], ["shape"]),
        node("Size", ["x"], ["size"]),
        node("Reshape", ["size", "one"], ["all"]),
        node("Reshape", ["answer", "all"], ["flat"]),
        node("Reshape", ["flat", "shape"], ["y"]),
        constants=[constant("one", [1])],
    )
    network = load_network(as_model(made), CPU)
    for count in (1, 4):
        assert network.decoder(torch.ones(count, 3)).shape == (count, 1, 1, 6)
    plain = load_network(as_model(dense()), CPU)
    z_BL = torch.rand(4, 3, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(network.decoder(z_BL), plain.decoder(z_BL), atol=0, rtol=0)


@pytest.mark.parametrize("count", [1, 3, 4, 6])
def test_a_batch_that_is_fixed_is_filled_up(as_model, count):
    made = dense()
    made.graph.input[0].CopyFrom(tensor("x", [4, 6]))
    made.graph.output[0].CopyFrom(tensor("y", [4, 6]))
    x_BCHW = torch.rand(count, 1, 1, 6, generator=torch.Generator().manual_seed(0))
    wanted = load_network(as_model(dense()), CPU)(x_BCHW)
    torch.testing.assert_close(load_network(as_model(made, batch=4), CPU)(x_BCHW), wanted)


def test_an_answer_that_depends_on_the_company_is_refused(as_model):
    nodes = [node("ReduceMean", ["answer"], ["mean"], axes=[0]), node("Sub", ["answer", "mean"], ["y"])]
    with pytest.raises(NetworkUnfit, match="depends on the images that come with it"):
        load_network(as_model(behind(dense(), *nodes)), CPU)


def test_a_graph_that_is_not_what_was_read_off_it(as_model):
    with pytest.raises(NetworkUnfit, match="ONNX Runtime"):
        load_network(as_model(dense(), bottleneck="nothing"), CPU)
    made = model([node("Concat", ["x", "x"], ["z"], axis=1), node("Relu", ["z"], ["y"])], y=("N", 12))
    with pytest.raises(NetworkUnfit, match=r"is \(12,\), and no image of 1x6x1"):
        load_network(as_model(made, latent=[12]), CPU)


@pytest.mark.parametrize(("latent", "source", "r"), [(5, "latent", 0), (6, "maze", 10)])
def test_without_a_middle_to_draw_in_mazes_are_left(as_model, capture_work, report, never, latent, source, r):
    """Six numbers go in: a latent of as many is what connections round the middle leave."""
    work = capture_work(model=as_model(dense(latent=latent), latent=[latent]), source="auto", r="auto")
    recipe = run(work, report, never).result.recipe
    assert (recipe.source, recipe.r) == (source, r)


@pytest.mark.parametrize("source", ["maze", "geometric", "noise", "latent"])
def test_cards_and_how_they_were_made(capture_work, report, never, source):
    outcomes = [run(capture_work(fixture("keras_conv"), source=source), report, never) for _ in range(2)]
    recipe = outcomes[0].result.recipe
    assert (recipe.backend, recipe.source, recipe.threads) == (name(), source, 1)
    assert len({outcome.result.cards_digest for outcome in outcomes}) == 1
    assert not [note for note in report.notes if "cannot run here" in note]


def test_a_capture_that_was_stopped_goes_on(capture_work, report):
    whole = run(capture_work(fixture("torch_dense"), count=200), report, lambda: False)
    work = replace(capture_work(fixture("torch_dense"), count=200), resume_seconds=0)
    calls = iter(range(1000))
    with pytest.raises(Exception, match="stopped after"):
        run(work, report, lambda: next(calls) > 3)
    again = replace(capture_work(fixture("torch_dense"), count=200), resume=report.points[-1])
    assert run(again, report, lambda: False).result.cards_digest == whole.result.cards_digest


def test_the_capsule_of_a_file_is_measured_where_the_data_is(digits, tmp_path, capsys, capture_work, report, never):
    model, out = fixture("keras_conv"), tmp_path / "capsule.safetensors"
    np.savez(tmp_path / "images.npz", x=digits["x_train"][:100])
    words = [str(model.path), str(tmp_path / "images.npz"), str(out)]
    assert main([*words]) == 1
    assert "push it to the service first" in capsys.readouterr().err
    assert main(["--architecture", "blk_1_fil_4", "--input", "8x8x1", *words]) == 1
    assert "do not go together" in capsys.readouterr().err
    assert main(["--architecture", model.architecture.model_dump_json(), "--input", "8x8x1", *words]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["latent"], told["count"]) == ([12], 100)
    assert capsule.read(out.read_bytes()).facts.mean_error < 0.15
    work = capture_work(replace(model, capsule=out, capsule_digest="c"), source="capsule", r=0)
    assert run(work, report, never).result.measures.diversity > 0.3


def test_cards_of_a_file_teach_a_network(capture_work, report, never, folder):
    parent = fixture("sklearn_mlp")
    work = capture_work(parent, source="latent", r=0, count=64)
    run(work, report, never)
    asked = {"kind": "distill", "flashcards": "flashcards_" + "0" * 32, "architecture": "dense_ae_16_8", "epochs": 20}
    distilling = replace(
        work,
        spec=job_spec.validate_python(asked | {"batch_size": 4, "learning_rate": 0.01}),
        out=folder(),
        cards=CardsInput(path=work.out / "cards.npy", digest="c"),
    )
    result = run(distilling, report, never).result
    assert result.parent_parameters == 36
    assert result.compared[0].parent_mae < result.compared[0].child_mae
