"""Bytes to Arrow: manifest lists, manifests, Puffin and partition statistics files."""
