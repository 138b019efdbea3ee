"""How a learner keeps what it knows: one file a strategy, each a few hooks around the training loop."""

from engine.strategies.base import Strategy
from engine.strategies.flashcards import FlashcardsReplay
from engine.strategies.naive import Naive
from engine.strategies.setting import Setting

STRATEGIES = {
    "flashcards": FlashcardsReplay,
    "naive": Naive,
}


def open_strategy(setting: Setting) -> Strategy:
    return STRATEGIES[setting.config.kind](setting)
