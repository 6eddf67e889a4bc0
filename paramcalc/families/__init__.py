"""Recipes: one small function per architecture, grouped by kinship. Importing this package registers them all."""

from paramcalc.families import bert, deepseek, gemma, gpt, llama, moe, recurrent, seq2seq
from paramcalc.families.registry import FAMILIES, Family, find

__all__ = ["FAMILIES", "Family", "bert", "deepseek", "find", "gemma", "gpt", "llama", "moe", "recurrent", "seq2seq"]
