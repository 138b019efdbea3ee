"""How a learner keeps what it knows: one file a strategy, each a few hooks around the training loop."""

from engine.strategies.base import Strategy
from engine.strategies.cl_vae import ClVaeReplay
from engine.strategies.coreset import CoresetReplay
from engine.strategies.ewc import ElasticWeights
from engine.strategies.flashcards import FlashcardsReplay
from engine.strategies.joint import Joint
from engine.strategies.lwf import LearningWithoutForgetting
from engine.strategies.naive import Naive
from engine.strategies.setting import Setting
from engine.strategies.si import SynapticIntelligence
from engine.strategies.vae_replay import GenerativeReplay

STRATEGIES = {
    "flashcards": FlashcardsReplay,
    "naive": Naive,
    "joint": Joint,
    "coreset": CoresetReplay,
    "lwf": LearningWithoutForgetting,
    "ewc": ElasticWeights,
    "si": SynapticIntelligence,
    "vae_replay": GenerativeReplay,
    "cl_vae": ClVaeReplay,
}


def open_strategy(setting: Setting) -> Strategy:
    return STRATEGIES[setting.config.kind](setting)
