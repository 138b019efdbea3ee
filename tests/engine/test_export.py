import numpy as np
import onnx
import onnxruntime
import pytest
import torch

from engine.errors import Diverged, ExportMismatch, Stopped
from engine.files import digest_of
from engine.run import run
from engine.weights import load_network
from engine.work import Work
from flashcards.contract.architecture import architecture_spec
from flashcards.contract.specs import job_spec

CPU = torch.device("cpu")
NETWORKS = [
    ("blk_2_fil_8", (16, 8, 3)),
    ({"family": "blk", "blocks": 1, "filters": 5, "activation": "relu", "head": "sigmoid"}, (8, 8, 1)),
    ("vae_2_fil_8", (16, 16, 3)),
    ("conv_ae_8_16", (16, 16, 3)),
    ("conv_ae_8_16_latent_6_tanh_pool_sigmoid", (16, 16, 1)),
    ("conv_ae_8_plain", (8, 8, 1)),
    ("dense_ae_32_8", (1, 20, 1)),
    ("dense_ae_32_16_4", (6, 5, 3)),
    ("tasknet_ae_width_2_hidden_8_latent_4", (13, 11, 3)),
    ("tasknet_10_4_width_2_hidden_8_latent_4", (13, 11, 3)),
    ("resnet18_10_width_4", (16, 16, 3)),
    ("vgg16_10_width_4", (32, 32, 3)),
]


@pytest.fixture
def export_work(folder, new_model):
    def make(architecture="blk_1_fil_4", image=(8, 8, 1), **model) -> Work:
        asked = {"kind": "export", "model": f"model_{'0' * 32}"}
        told = architecture_spec.validate_python(architecture)
        made = new_model(architecture=told, image=image, **model)
        return Work(spec=job_spec.validate_python(asked), out=folder(), model=made)

    return make


def live(network) -> None:
    """As after a training: no bias is zero, and a batch norm has seen images."""
    generator = torch.Generator().manual_seed(3)
    for name, tensor in network.state_dict().items():
        if name.endswith(("bias", "running_mean")):
            tensor.uniform_(-0.3, 0.3, generator=generator)
        elif name.endswith("running_var"):
            tensor.uniform_(0.5, 2.0, generator=generator)


def answer(work: Work, x_BCHW: np.ndarray) -> np.ndarray:
    session = onnxruntime.InferenceSession(work.out / "model.onnx", providers=["CPUExecutionProvider"])
    (y,) = session.run(["y"], {"x": x_BCHW})
    return y


@pytest.mark.parametrize(("architecture", "image"), NETWORKS, ids=[str(each[0])[:40] for each in NETWORKS])
def test_every_family_answers_as_its_network_does(export_work, report, never, architecture, image):
    work = export_work(architecture, image, spoil=live, range=(-1.0, 1.0) if "plain" in str(architecture) else (0, 1))
    result = run(work, report, never).result
    assert result.max_abs_difference <= result.allowed
    assert (result.digest, result.size) == (
        digest_of(work.out / "model.onnx"),
        (work.out / "model.onnx").stat().st_size,
    )
    kinds = ["random", "pattern", *(["card"] if work.model.architecture.task == "reconstruct" else [])]
    assert [each.inputs for each in result.parity] == kinds
    height, width, channels = image
    for count in (1, 5):  # other images than those it was checked on, and as many as one likes
        x = np.random.default_rng(count).random((count, channels, height, width), dtype=np.float32)
        with torch.inference_mode():
            expected = load_network(work.model, CPU)(torch.from_numpy(x)).numpy()
        np.testing.assert_allclose(answer(work, x), expected, atol=result.allowed)


def test_the_file_says_what_it_is(export_work, report, never):
    work = export_work("conv_ae_8_16", (16, 16, 3), range=(-1.0, 1.0))
    run(work, report, never)
    model = onnx.load(work.out / "model.onnx")
    said = {entry.key: entry.value for entry in model.metadata_props}
    assert architecture_spec.validate_json(said["flashcards.architecture"]) == work.model.architecture
    assert said["flashcards.input"] == "16x16x3"
    assert said["flashcards.range"] == "-1.0,1.0"
    assert said["flashcards.digest"] == work.model.digest
    assert "latent" in {output for node in model.graph.node for output in node.output}
    assert model.graph.input[0].type.tensor_type.shape.dim[0].dim_param == "batch"


def test_the_same_network_makes_the_same_bytes(export_work, report, never):
    one, other = export_work(), export_work()
    assert run(one, report, never).result.digest == run(other, report, never).result.digest


def test_a_tracking_server_gets_the_same_bytes(export_work, report, never, folder):
    from engine.export import write_graph

    work = export_work("conv_ae_8_16", (16, 16, 3))
    run(work, report, never)
    graph = write_graph(work.model, there := folder())
    assert (there / "model.onnx").read_bytes() == (work.out / "model.onnx").read_bytes()
    assert graph.worst <= graph.allowed


def test_a_file_that_answers_otherwise_is_not_kept(export_work, report, never, monkeypatch):
    from engine import drawing

    def clumsy(self, x: str, **_) -> str:
        return self.op("Resize", x, "", self.constant(np.array([2, 2], np.float32)), axes=[2, 3], mode="linear")

    monkeypatch.setattr(drawing.Drawing, "nearest", clumsy)
    work = export_work("blk_1_fil_4")
    with pytest.raises(ExportMismatch, match="is allowed"):
        run(work, report, never)
    assert not list(work.out.iterdir())


def test_a_network_without_finite_answers_is_refused(export_work, report, never):
    def explode(network) -> None:
        network.decoder.head.bias.fill_(3.4e38)
        network.decoder.head.weight.fill_(3.4e38)

    with pytest.raises(Diverged, match="look at its weights"):
        run(export_work(spoil=explode), report, never)


def test_it_stops_when_told(export_work, report):
    with pytest.raises(Stopped):
        run(export_work(), report, lambda: True)
