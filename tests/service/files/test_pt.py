"""Files that torch itself saved, as people save them."""

import io
import tempfile
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import load

from service.files import tensors
from service.files.errors import BadFile
from service.files.out import Out
from service.files.tensors import Held, write_weights
from service.files.upload import Upload
from service.files.weights import read_weights

STATE = {"a.weight": torch.arange(24.0).reshape(2, 3, 4) / 7, "a.bias": torch.tensor([1.5, -2.0])}


def saved(value: Any, **options: Any) -> bytes:
    stream = io.BytesIO()
    torch.save(value, stream, **options)
    return stream.getvalue()


def read(data: bytes, use: Callable[[Upload, Held], Any] = lambda _, held: held.told()) -> Any:
    with tempfile.TemporaryFile() as file:
        file.write(data)
        file.flush()
        upload = Upload(file.fileno())
        return use(upload, read_weights(upload))


def converted(data: bytes) -> dict[str, np.ndarray]:
    """What comes out, as the safetensors library reads it."""

    def convert(upload: Upload, held: Held) -> dict[str, np.ndarray]:
        with tempfile.TemporaryFile() as made:
            with Out(made.fileno()) as out:
                write_weights(upload, out, held, {tensor.name: tensor.name for tensor in held.tensors}, {"k": "v"})
            made.seek(0)
            return load(made.read())

    found: dict[str, np.ndarray] = read(data, convert)
    return found


def refusal(data: bytes) -> BadFile:
    with pytest.raises(BadFile) as caught:
        converted(data)
    return caught.value


def same(data: bytes, state: dict[str, torch.Tensor] = STATE) -> bool:
    found = converted(data)
    assert found.keys() == state.keys()
    assert {array.dtype for array in found.values()} == {np.dtype("f4")}
    return all(np.array_equal(found[name], tensor.detach().float().numpy()) for name, tensor in state.items())


def test_a_plain_state_dict() -> None:
    told = {"a.weight": [2, 3, 4], "a.bias": [2]}
    assert read(saved(STATE)) == {
        "format": "pt",
        "metadata": {},
        "tensors": told,
        "dtypes": ["float32"],
        "counters": [],
    }
    assert same(saved(STATE))


def test_the_state_dict_of_a_module_has_attributes_which_are_dropped() -> None:
    module = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.Tanh(), torch.nn.Conv2d(4, 3, 3))
    assert module.state_dict()._metadata
    assert same(saved(module.state_dict()), module.state_dict())


def test_parameters_are_tensors() -> None:
    state = {name: torch.nn.Parameter(tensor) for name, tensor in STATE.items()}
    assert same(saved(state), state)


def test_data_parallel_puts_a_prefix_before_every_name() -> None:
    module = torch.nn.Sequential(torch.nn.Linear(3, 2))
    names = list(read(saved(torch.nn.DataParallel(module).state_dict()))["tensors"])
    assert names == ["module.0.weight", "module.0.bias"]


@pytest.mark.parametrize("key", ["state_dict", "model_state_dict", "model", "model_state"])
def test_a_checkpoint_of_more_things_has_it_under_a_usual_key(key: str) -> None:
    module = torch.nn.Linear(3, 2)
    optimizer = torch.optim.Adam(module.parameters())
    module(torch.ones(1, 3)).sum().backward()
    optimizer.step()
    more = {"epoch": 3, "loss": 0.25, "done": False, "optimizer": optimizer.state_dict(), "history": [1, (2, None)]}
    assert same(saved({**more, key: module.state_dict()}), module.state_dict())


def test_two_state_dicts_in_one_file_are_ambiguous() -> None:
    assert "'model', 'state_dict' are both one" in refusal(saved({"model": STATE, "state_dict": STATE})).detail


@pytest.mark.parametrize(
    "value", [{"weights": STATE}, {"epoch": 1}, {}, [STATE], 3, "text", None, STATE["a.bias"], {1: STATE["a.bias"]}]
)
def test_what_is_no_state_dict_is_refused_with_what_it_is(value: Any) -> None:
    bad = refusal(saved(value))
    assert bad.title == "no state dict"
    assert "torch.save(model.state_dict(), path)" in bad.detail


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.bfloat16])
def test_other_floats_become_float32(dtype: torch.dtype) -> None:
    state = {name: tensor.to(dtype) for name, tensor in STATE.items()}
    assert read(saved(state))["dtypes"] == [str(dtype).removeprefix("torch.")]
    assert same(saved(state), state)


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.uint8, torch.bool])
def test_what_is_no_float_is_refused(dtype: torch.dtype) -> None:
    bad = refusal(saved({"a": torch.ones(3, dtype=dtype)}))
    assert bad.title == "the weights are not floats"


@pytest.mark.parametrize("dtype", [torch.complex64, torch.uint16, torch.float8_e4m3fn])
def test_rarer_types_are_refused(dtype: torch.dtype) -> None:
    refusal(saved({"a": torch.ones(3).to(dtype)}))


def test_views_are_read_as_they_are_seen() -> None:
    base = torch.arange(60.0).reshape(3, 4, 5)
    state = {
        "transposed": base.permute(2, 0, 1),
        "every other": base[:, ::2, 1::2],
        "expanded": base[:1, 0].expand(3, 5),
        "last": base[2, 3, 4],
        "all": base,
        "empty": base[:, :0],
    }
    assert same(saved(state), state)


def test_tensors_may_share_a_storage() -> None:
    shared = torch.arange(10.0)
    state = {"a": shared[:4], "b": shared[2:8], "c": shared}
    data = saved(state)
    assert sum("/data/" in name for name in zipfile.ZipFile(io.BytesIO(data)).namelist()) == 1
    assert same(data, state)


def test_a_view_of_a_large_storage_costs_what_is_seen() -> None:
    state = {"a": torch.zeros(10_000_000)[5:9]}
    assert same(saved(state), state)


def test_a_view_that_is_spread_too_far_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tensors, "MAX_SPAN", 4000)
    spread = torch.zeros(2000)
    assert same(saved({"a": spread[:1000:999]}), {"a": spread[:1000:999]})
    assert ".contiguous()" in refusal(saved({"a": spread[:1001:1000]})).detail


def test_a_file_without_checksums_is_taken() -> None:
    torch.serialization.set_crc32_options(False)
    try:
        data = saved(STATE)
    finally:
        torch.serialization.set_crc32_options(True)
    assert same(data)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16])
def test_weights_are_finite(value: float, dtype: torch.dtype) -> None:
    bad = refusal(saved({"a": torch.tensor([1.0, value], dtype=dtype)}))
    assert bad.title == "the weights are not finite"


def test_doubles_past_float32_are_refused() -> None:
    assert "more than float32" in refusal(saved({"a": torch.tensor([1e300], dtype=torch.float64)})).detail


def test_the_form_of_old_is_refused_with_how_to_save_it_anew() -> None:
    bad = refusal(saved(STATE, _use_new_zipfile_serialization=False))
    assert bad.title == "a bare pickle is not taken"
    assert "torch.save(torch.load(path, weights_only=True), new_path)" in bad.detail


def test_a_newer_protocol_is_refused() -> None:
    assert "protocol 4" in refusal(saved(STATE, pickle_protocol=4)).detail


def test_a_whole_module_is_refused() -> None:
    assert "'torch.nn.modules.conv.Conv2d'" in refusal(saved(torch.nn.Conv2d(1, 1, 1))).detail


@pytest.mark.parametrize(("kind", "word"), [("script", "TorchScript"), ("package", "torch.package"), ("pt2", ".pt2")])
def test_each_file_that_runs_code_is_refused_by_its_name(kind: str, word: str, tmp_path: Path) -> None:
    path, module = tmp_path / f"net.{kind}", torch.nn.Linear(3, 2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if kind == "script":
            torch.jit.save(torch.jit.trace(module, torch.ones(1, 3)), path)
        elif kind == "package":
            with torch.package.PackageExporter(path) as exporter:
                exporter.extern("**")
                exporter.save_pickle("net", "model.pkl", module)
        else:
            torch.export.save(torch.export.export(module, (torch.ones(1, 3),)), path)
    bad = refusal(path.read_bytes())
    assert bad.title == "this kind of .pt is not taken"
    assert word in bad.detail


def test_too_many_tensors_are_refused() -> None:
    assert "257" in refusal(saved({str(number): torch.zeros(1) for number in range(257)})).detail


def test_a_compressed_copy_is_refused() -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(saved(STATE))) as old, zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            new.writestr(name, old.read(name))
    assert refusal(packed.getvalue()).title == "the .pt is compressed"


SMALL = saved({"a": torch.arange(3.0), "b": torch.arange(4.0).reshape(2, 2).t()})


@settings(max_examples=400, deadline=None)
@given(st.data())
def test_a_damaged_file_is_refused_or_read(data: st.DataObject) -> None:
    damaged = bytearray(SMALL)
    places = st.integers(0, len(damaged) - 1)
    for place, value in data.draw(st.lists(st.tuples(places, st.integers(0, 255)), min_size=1, max_size=4)):
        damaged[place] = value
    kept = bytes(damaged[: data.draw(st.integers(len(damaged) - 2, len(damaged)) | places)])
    try:
        found = converted(kept)
    except BadFile as bad:
        bad.detail.encode()
        return
    assert all(np.isfinite(array).all() for array in found.values())
