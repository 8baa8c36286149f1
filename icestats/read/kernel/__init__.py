"""The compiled kernel: inflated blocks of manifests straight into accumulators and Arrow buffers.

Bytes and a decoding program come in; counts, bounds and rows as NumPy arrays go out. It never reads past its buffers,
and knows neither files nor Arrow. To import it imports numba: only modules that decode manifests do.
"""
