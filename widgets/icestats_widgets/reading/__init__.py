"""What reads for the explorer: in come choices from the state, out go answers of `icestats.Table`, put into the state.

Reading happens in the background; nothing here draws.
"""
