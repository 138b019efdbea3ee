"""Why a job could not be done, in words that a user can act on.

EngineError
├── DatasetUnfit    these images cannot be used for what was asked
├── CardsUnfit      nor these cards
├── Collapsed       the network learnt no more than one constant image
├── NetworkUnfit    this network cannot be run
├── ForwardMismatch the network we built is not the one its owner has
├── ExportMismatch  nor a file that we made of it
├── NoCapsule       what was asked needs a capsule
├── NoPass          patterns that were to become cards without a pass
├── OtherMake       a shard whose cards would not go with those of the others
├── ForgotTooMuch   earlier tasks became worse than the budget allows
├── NothingLearnt   no learner of a comparison came to its end
├── StrategyUnfit   this learner cannot keep its knowledge that way
├── Diverged        numbers left the finite range: a loss, or cards under iteration
├── Stopped         the caller said so
├── OutOfMemory     the work does not fit the machine
└── DiskFull        no room for what was made
"""

from collections.abc import Iterable

from engine.work import Product


class EngineError(Exception):
    type = "engine-error"
    title = "The work failed"

    def __init__(self, detail: str, products: Iterable[Product] = ()) -> None:
        super().__init__(detail)
        self.detail = detail
        self.products = list(products)  # made before it failed, whole and readable


class DatasetUnfit(EngineError):
    type = "dataset-unfit"
    title = "The dataset cannot be used for this"


class CardsUnfit(EngineError):
    type = "flashcards-unfit"
    title = "The flashcards cannot be used for this"


class Collapsed(EngineError):
    type = "training-collapsed"
    title = "The training collapsed"


class NetworkUnfit(EngineError):
    type = "network-unfit"
    title = "The network cannot be run"


class ForwardMismatch(EngineError):
    type = "forward-mismatch"
    title = "The network does not give the answers of its probe"


class ExportMismatch(EngineError):
    type = "export-mismatch"
    title = "The exported file does not give the answers of the network"


class NoCapsule(EngineError):
    type = "no-capsule"
    title = "The model has no capsule"


class NoPass(EngineError):
    type = "no-pass"
    title = "A pattern is no card before a pass"


class OtherMake(EngineError):
    type = "other-make"
    title = "The shards would not be of one make"


class ForgotTooMuch(EngineError):
    type = "forgot-too-much"
    title = "The learner forgot more than it was allowed to"


class NothingLearnt(EngineError):
    type = "nothing-learnt"
    title = "There is nothing to compare"


class StrategyUnfit(EngineError):
    type = "strategy-unfit"
    title = "The strategy cannot be used for this learner"


class Diverged(EngineError):
    type = "diverged"
    title = "The numbers left the finite range"


class Stopped(EngineError):
    type = "stopped"
    title = "Stopped before the end"


class OutOfMemory(EngineError):
    type = "out-of-memory"
    title = "The work does not fit into memory"


class DiskFull(EngineError):
    type = "disk-full"
    title = "The disk is full"
