"""GGUF: the bytes of the file that llama.cpp writes for a model, tensor by tensor."""

from __future__ import annotations

from paramcalc.storage.gguf.file import GgufFile, GgufTensors, gguf_file, gguf_stage
from paramcalc.storage.gguf.types import is_gguf

__all__ = ["GgufFile", "GgufTensors", "gguf_file", "gguf_stage", "is_gguf"]
