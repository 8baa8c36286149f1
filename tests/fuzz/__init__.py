"""Readers of bytes that strangers wrote, each in a process of its own that libFuzzer drives.

`python -m tests.fuzz` runs them all. What was found interesting stays in `.fuzz`, so that the next run begins there; an
input that breaks a reader is in `.fuzz/broken`, and `python -m tests.fuzz --replay FILE` reads it again.
"""
