"""One snapshot: what is read of it, what a filter leaves of it and why, and how well it is clustered.

An opened table and bound filters come in; its parts, plans, layouts and answers of SQL go out. Nothing is read before
somebody asks for it, and then once.
"""
