"""Defaults that encoders share."""

from __future__ import annotations

CLASSIFIED = ("sequence_classification", "multiple_choice")
