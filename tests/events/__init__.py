"""One parser turns raw text into typed rows or dead letters."""
