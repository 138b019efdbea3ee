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

#: Numbers in the latent of each.
LATENTS = {
    "blk_4_fil_16": 64,
    "blk_4_fil_32": 128,
    "blk_4_fil_64": 256,
    "blk_4_fil_128": 512,
    "blk_3_fil_64": 1024,
    "blk_2_fil_32": 2048,
}

#: Of these the paper prints the error of a network that learnt nothing: five runs without any deviation.
COLLAPSED = ("blk_4_fil_128",)

#: CIFAR-10, cards of blk_4_fil_32 (its AE1, variant I): test MAE of the new network on data, from AE1's cards.
DISTILLED = {"blk_4_fil_16": (0.0787, 0.0939), "blk_4_fil_32": (0.0640, 0.0725), "blk_4_fil_64": (0.0512, 0.0681)}

#: Sequence5: MAE and BWT of reconstruction, MAE and BWT of denoising (Table 3, 5 runs). None: not told.
TABLE3 = {
    "joint": (0.035, None, 0.055, None),
    "naive": (0.552, -0.64, 0.547, -0.63),
    "coreset 1 %": (0.058, -0.02, 0.075, -0.02),
    "coreset 10 %": (0.049, -0.02, 0.059, -0.02),
    "lwf": (0.549, -0.52, 0.437, -0.33),
    "vae_replay": (0.075, -0.06, 0.071, -0.04),
    "cl_vae": (0.352, -0.16, 0.546, -0.28),
    "mazes": (0.053, -0.03, 0.058, -0.03),
}

#: CIFAR-10 in five sessions, accuracy after each: the softer setting (Table 4; its baselines are a cited work's).
SESSIONS_SOFT = {
    "naive": (67.80, 69.31, 71.37, 73.12, 73.23),
    "joint": (67.80, 76.13, 81.22, 81.83, 82.12),
    "ewc": (67.80, 69.45, 72.68, 74.02, 74.31),
    "si": (67.80, 70.48, 72.82, 74.63, 74.58),
    "imm mode": (67.80, 69.69, 72.85, 74.37, 73.84),
    "eeil": (67.80, 71.97, 73.27, 74.91, 74.66),
    "agem": (67.80, 72.27, 73.72, 74.81, 75.15),
    "flashcards": (67.90, 71.40, 73.34, 74.84, 74.88),
}

#: The same in the harder setting (supplementary, 5 runs), of CIFAR-10 and of CIFAR-100.
SESSIONS_HARD = {
    "naive": (67.90, 67.35, 67.66, 61.18, 63.05),
    "joint": (67.90, 69.74, 72.00, 72.85, 73.54),
    "coreset 1 %": (67.90, 67.50, 68.29, 61.97, 63.85),
    "coreset 10 %": (67.90, 68.47, 68.38, 64.12, 65.18),
    "flashcards": (67.90, 68.05, 68.14, 65.64, 65.83),
}
SESSIONS_HARD_100 = {
    "naive": (37.67, 34.03, 35.10, 25.35, 28.74),
    "joint": (37.67, 40.63, 41.02, 41.24, 41.55),
    "coreset 1 %": (37.67, 34.03, 34.95, 25.79, 29.09),
    "coreset 10 %": (37.67, 34.97, 35.02, 29.97, 30.63),
    "flashcards": (37.67, 36.53, 36.34, 33.47, 32.60),
}

#: Test accuracy of VGG16 that learnt from images, from what an autoencoder makes of them, and from what one that was
#: taught by cards alone makes of them (supplementary, 5 runs).
DOWNSTREAM = {
    "mnist": (0.9940, 0.9921, 0.9869),
    "fashion_mnist": (0.9215, 0.9126, 0.8978),
    "cifar10": (0.8003, 0.6295, 0.5659),
}

#: The three orders of Sequence3: MAE on each task, in that order, after the last. The paper prints the same joint row
#: under all three, in the order of the first; here it is permuted with its columns.
SEQUENCE3 = {
    ("mnist", "fashion_mnist", "cifar10"): {
        "joint": (0.0141, 0.0256, 0.0629),
        "coreset 10 %": (0.0249, 0.0395, 0.0666),
        "naive": (0.0467, 0.0469, 0.0512),
        "mazes": (0.0282, 0.0366, 0.0579),
    },
    ("fashion_mnist", "cifar10", "mnist"): {
        "joint": (0.0256, 0.0629, 0.0141),
        "coreset 10 %": (0.0386, 0.0661, 0.0200),
        "naive": (0.0816, 0.2996, 0.0140),
        "mazes": (0.0352, 0.0637, 0.0156),
    },
    ("cifar10", "mnist", "fashion_mnist"): {
        "joint": (0.0629, 0.0141, 0.0256),
        "coreset 10 %": (0.0654, 0.0229, 0.0336),
        "naive": (0.1233, 0.0465, 0.0371),
        "mazes": (0.0664, 0.0261, 0.0308),
    },
}
