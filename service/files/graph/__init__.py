"""ONNX files: read in the child, byte by byte first, then as a graph. Nothing in here runs one."""
