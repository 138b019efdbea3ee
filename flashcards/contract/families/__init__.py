"""One file a family of networks: what a spec of it holds, and the tensors that follow from it."""
