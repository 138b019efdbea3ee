"""ONNX Runtime on a CPU, set so that the same graph gives the same numbers every time."""

import onnxruntime


def open_session(graph: bytes, threads: int) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.execution_mode = onnxruntime.ExecutionMode.ORT_SEQUENTIAL
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
    options.use_deterministic_compute = True
    options.log_severity_level = 3  # errors; a warning has nobody to read it
    return onnxruntime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])


def name() -> str:
    return f"onnxruntime-{onnxruntime.__version__}-cpu"
