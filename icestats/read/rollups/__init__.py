"""Roll-ups that need not be read from manifests again: committed ones, cached ones, and merging them.

Manifests' paths come in; their roll-ups go out, equal to those that the manifests themselves give. A roll-up that does
not match its manifest is never used.
"""
