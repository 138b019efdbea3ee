"""Is this a probe? Images and the answers that the network's owner got for them, in the shape that the model takes."""

from service.files.errors import BadFile
from service.files.facts import ProbeFacts, ProbeQuestion
from service.files.model import Weights
from service.files.words import several, sides

MOST_IMAGES = 64
UNFIT = "the probe does not fit the model"


def describe_probe(question: ProbeQuestion, held: Weights) -> ProbeFacts:
    if set(held.tensors) != {"x", "y"}:
        raise BadFile(UNFIT, f"a probe holds the tensors x and y, and this file {several(held.tensors) or 'none'}")
    if held.dtypes != ["float32"]:
        raise BadFile(UNFIT, f"a probe is float32, and this one {' and '.join(held.dtypes) or 'int64'}")
    x, y = held.tensors["x"], held.tensors["y"]
    if x[1:] != question.input or y != (x[0], *question.answer):
        wanted = f"x must be N x {sides(question.input)} (channels last) and y N x {sides(question.answer)}"
        raise BadFile(UNFIT, f"{wanted}; they are {sides(x)} and {sides(y)}")
    if not 1 <= x[0] <= MOST_IMAGES:
        raise BadFile(UNFIT, f"1 to {MOST_IMAGES} images are enough to tell; this probe has {x[0]:,}")
    return ProbeFacts(images=x[0])
