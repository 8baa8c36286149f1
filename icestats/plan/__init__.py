"""Row filters and what they rule out."""
