"""Reads the results of conformance runs: ``ltc conformance levels`` and ``ltc conformance report``."""
