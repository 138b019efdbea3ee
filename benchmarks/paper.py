"""What the paper prints, to stand beside ours.

Gopalakrishnan et al., Knowledge Capture and Replay for Continual Learning.
"""

#: Test MAE of a network trained on the data, and of one trained on flashcards alone (Table 1, 5 runs).
TABLE1 = {"mnist": (0.0184, 0.0491), "fashion_mnist": (0.0259, 0.0440), "cifar10": (0.0564, 0.0686)}

#: Weighted alpha of the same two networks, and of one that was not trained (Table 1).
ALPHA = {
    "mnist": (1.9185, 2.0531, 1.4343),
    "fashion_mnist": (2.0044, 2.1158, 1.4343),
    "cifar10": (2.0266, 2.1531, 1.4343),
}

#: CIFAR-10: parameters, original MAE, flashcards MAE (the architecture table of the supplementary, 5 runs).
ARCHITECTURES = {
    "blk_4_fil_16": (24_083, 0.0787, 0.0963),
    "blk_4_fil_32": (94_243, 0.0640, 0.0725),
    "blk_4_fil_64": (372_803, 0.0512, 0.0570),
    "blk_4_fil_128": (1_482_883, 0.2062, 0.2445),
    "blk_3_fil_64": (298_947, 0.0437, 0.0599),
    "blk_2_fil_32": (57_251, 0.0358, 0.0389),
}

#: CIFAR-10, cards of blk_4_fil_32 (its AE1, variant I): test MAE of the new network on data, from AE1's cards.
DISTILLED = {"blk_4_fil_16": (0.0787, 0.0939), "blk_4_fil_32": (0.0640, 0.0725), "blk_4_fil_64": (0.0512, 0.0681)}
