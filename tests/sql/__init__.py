"""Text in, bound queries out, and back: golden files, and every error by its words."""
