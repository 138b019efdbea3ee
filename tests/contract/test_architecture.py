import pytest
from pydantic import TypeAdapter, ValidationError

from flashcards.contract.architecture import ArchitectureField
from flashcards.contract.image import ImageShape

architecture = TypeAdapter(ArchitectureField).validate_python
CIFAR = ImageShape(32, 32, 3)

#: The paper's architecture table.
PAPER = {
    "blk_4_fil_16": (24_083, (2, 2, 16)),
    "blk_4_fil_32": (94_243, (2, 2, 32)),
    "blk_4_fil_64": (372_803, (2, 2, 64)),
    "blk_4_fil_128": (1_482_883, (2, 2, 128)),
    "blk_3_fil_64": (298_947, (4, 4, 64)),
    "blk_2_fil_32": (57_251, (8, 8, 32)),
}


@pytest.mark.parametrize(("name", "parameters", "latent"), [(name, *facts) for name, facts in PAPER.items()])
def test_the_counts_of_the_paper(name, parameters, latent):
    built = architecture(name)
    assert built.name == name
    assert built.parameters(CIFAR) == parameters
    assert built.latent_shape(CIFAR) == latent


def test_a_name_and_its_fields_are_the_same():
    assert architecture("blk_2_fil_4") == architecture({"blocks": 2, "filters": 4})


@pytest.mark.parametrize(
    "bad",
    ["resnet", "blk_0_fil_4", "blk_7_fil_4", "blk_2_fil_0", "blk_2_fil_9999", "BLK_2_FIL_4", "", "blk_2_fil_4 ", 5, {}],
)
def test_what_is_not_an_architecture(bad):
    with pytest.raises(ValidationError):
        architecture(bad)


@pytest.mark.parametrize(
    ("shape", "fits"), [((8, 8, 1), True), ((8, 12, 1), True), ((8, 10, 1), False), ((2, 4, 1), False)]
)
def test_sides_must_halve(shape, fits):
    assert architecture("blk_2_fil_4").fits(ImageShape(*shape)) == fits
