"""`naive`, sequential fine-tuning: theta* = argmin mean |f(x) - x| over the new images, from the old weights on."""

from engine.strategies.base import Strategy
from engine.strategies.setting import Setting


class Naive(Strategy):
    def __init__(self, setting: Setting) -> None:
        self.setting = setting
