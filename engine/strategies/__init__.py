"""How a learner keeps what it knows: one file a strategy, each a few hooks around the training loop."""

from engine.strategies.agem import AveragedGradients
from engine.strategies.base import Strategy
from engine.strategies.cl_vae import ClVaeReplay
from engine.strategies.class_flashcards import ClassFlashcards
from engine.strategies.coreset import CoresetReplay
from engine.strategies.eeil import EndToEnd
from engine.strategies.ewc import ElasticWeights
from engine.strategies.flashcards import FlashcardsReplay
from engine.strategies.imm import MomentMatching
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
    "imm": MomentMatching,
    "eeil": EndToEnd,
    "agem": AveragedGradients,
}
OF_CLASSES = {"flashcards": ClassFlashcards}  # where a classifier's is another than an autoencoder's


def open_strategy(setting: Setting) -> Strategy:
    kind = setting.config.kind
    if setting.classes is not None and kind in OF_CLASSES:
        return OF_CLASSES[kind](setting)
    return STRATEGIES[kind](setting)
