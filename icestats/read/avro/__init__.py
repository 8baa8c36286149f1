"""Avro object container files: headers, codecs, and the program that decodes a writer's schema.

Bytes come in; inflated blocks, records and decoding programs go out. Every length is checked against the bytes that
are there before it is used.
"""
