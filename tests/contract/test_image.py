import pytest
from pydantic import TypeAdapter, ValidationError

from flashcards.contract.image import ImageShape, PixelRange, Shape

shape = TypeAdapter(Shape)


def test_it_is_written_as_people_write_it():
    assert shape.validate_python("28x32x3") == ImageShape(28, 32, 3)
    assert shape.dump_json(ImageShape(28, 32, 3)) == b'"28x32x3"'


def test_a_vector_is_an_image_of_one_long_row():
    assert shape.validate_python("1x4096x1") == ImageShape(1, 4096, 1)


@pytest.mark.parametrize(
    "bad", ["32x32", "0x1x1", "32x32x17", "1025x1x1", "1x4097x1", "2x1025x1", "axbxc", "-1x1x1", "", None, [1, 2], 7]
)
def test_what_is_not_a_shape(bad):
    with pytest.raises(ValidationError):
        shape.validate_python(bad)


@pytest.mark.parametrize("bad", [(1, 0), (0, 0), (0, float("nan")), (0, float("inf")), (0,)])
def test_what_is_not_a_range(bad):
    with pytest.raises(ValidationError):
        TypeAdapter(PixelRange).validate_python(bad)
