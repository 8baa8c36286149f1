"""Side by side with the peers: `python -m benchmarks [NAME ...]`. Figures are medians of several runs."""
