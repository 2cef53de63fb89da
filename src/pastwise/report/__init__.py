"""Typed results become tables, figures and text; no statistics of its own."""
