"""Weights as people have them: safetensors, a .pt state dict, or an ONNX file.

What the first bytes are decides, not a name.
"""

from service.files.errors import BadFile
from service.files.looks import is_onnx, is_pickle, is_safetensors, looks_like
from service.files.pt import read_pt
from service.files.safetensors import read_safetensors
from service.files.tensors import Held
from service.files.upload import Upload

ANEW = "where you trust it, torch.save(torch.load(path, weights_only=True), new_path) writes the form that is taken"
HOW = "save the state dict with safetensors.torch.save_file or torch.save, or export the network as ONNX"


def read_weights(upload: Upload) -> Held:
    head = upload.head()
    if is_safetensors(head):
        return read_safetensors(upload)
    if head.startswith(b"PK\x03\x04"):
        return read_pt(upload)
    if is_onnx(head):
        return Held("onnx", {}, [])  # another child reads it, one that knows graphs
    if is_pickle(head):
        raise BadFile("a bare pickle is not taken", f"it is the form of torch before 1.6, or no checkpoint: {ANEW}")
    raise BadFile("not a checkpoint", f"it looks like {looks_like(head)}; {HOW}")
