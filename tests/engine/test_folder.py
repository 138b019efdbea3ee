import numpy as np
import pytest
import torch
from PIL import Image

from engine.errors import DatasetUnfit
from engine.folder import Folder, decode
from flashcards.contract.image import ImageShape
from service.files.picture import Size
from service.files.picture import decode as decode_upload

GREY, COLOUR = ImageShape(8, 8, 1), ImageShape(8, 8, 3)


def noise(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).integers(0, 256, shape, np.uint8)


@pytest.mark.parametrize("wanted", [GREY, COLOUR])
@pytest.mark.parametrize(
    ("name", "picture"),
    [
        ("a.png", Image.fromarray(noise(20, 12))),
        ("a.jpg", Image.fromarray(noise(20, 12, 3))),
        ("a.webp", Image.fromarray(noise(5, 5, 3))),
        ("a.png", Image.fromarray(noise(20, 12, 4), "RGBA")),
        ("a.png", Image.fromarray(noise(20, 12, 2), "LA")),
        ("a.png", Image.fromarray(noise(20, 12, 3)).quantize(16)),
        ("a.png", Image.fromarray(noise(20, 12) > 128)),
    ],
)
def test_a_file_becomes_the_pixels_that_an_upload_of_it_would(tmp_path, name, picture, wanted):
    picture.save(tmp_path / name)
    uploaded = decode_upload(name, (tmp_path / name).read_bytes(), Size(*wanted))
    assert np.array_equal(decode(tmp_path / name, wanted), uploaded)


def test_a_folder_in_the_order_of_its_names(tmp_path):
    for name, grey in (("b/1.png", 51), ("a/2.PNG", 102), (".hidden/3.png", 1), ("__MACOSX/4.png", 1)):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        Image.new("L", (9, 9), grey).save(tmp_path / name)
    (tmp_path / "notes.txt").write_text("")
    images = Folder(tmp_path, GREY, (-1.0, 1.0))
    assert len(images) == 2
    x_BCHW = images.batch(np.array([0, 1]), torch.device("cpu"))
    assert x_BCHW.shape == (2, 1, 8, 8)
    assert x_BCHW[:, 0, 0, 0].tolist() == pytest.approx([-0.2, -0.6])


def test_only_train_was_learnt_from(tmp_path):
    for split in ("train", "test"):
        (tmp_path / split).mkdir()
        Image.new("L", (8, 8)).save(tmp_path / split / "1.png")
    assert [file.parent.name for file in Folder(tmp_path, GREY, (0.0, 1.0)).files] == ["train"]


def test_what_cannot_be_used_is_said_in_words(tmp_path):
    with pytest.raises(DatasetUnfit, match="there is no image in"):
        Folder(tmp_path, GREY, (0.0, 1.0))
    with pytest.raises(DatasetUnfit, match="grey or RGB, and the network takes 8x8x4"):
        Folder(tmp_path, ImageShape(8, 8, 4), (0.0, 1.0))
    Image.fromarray(noise(8, 8).astype(np.uint16) * 256).save(tmp_path / "deep.png")
    with pytest.raises(DatasetUnfit, match=r"deep.png has 16 bits"):
        decode(tmp_path / "deep.png", GREY)
    (tmp_path / "no.png").write_bytes(b"no picture")
    with pytest.raises(DatasetUnfit, match=r"no.png cannot be read"):
        decode(tmp_path / "no.png", GREY)
    frames = [Image.fromarray(noise(8, 8, 3)), Image.new("RGB", (8, 8))]
    frames[0].save(tmp_path / "moves.webp", save_all=True, append_images=frames[1:])
    with pytest.raises(DatasetUnfit, match=r"moves.webp is animated"):
        decode(tmp_path / "moves.webp", COLOUR)
