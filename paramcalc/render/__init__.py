"""Renderers: from a report to text. A renderer takes a report and returns a string; it reads no files."""
