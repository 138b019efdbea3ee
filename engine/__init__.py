"""The paper "Knowledge Capture and Replay for Continual Learning" as plain PyTorch.

Tensors carry their shape in their name: B images of a batch, N images of a set, R passes, C channels, H rows,
W columns. `x_BCHW` is what a network eats; `x_NHWC` is how images lie in files and in numpy.
"""
