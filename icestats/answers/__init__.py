"""What answers are made of: their Arrow schemas, arrays, findings, and figures in words.

Plain values come in, and Arrow arrays, text and HTML go out. Nothing here knows what an Iceberg table is, or reads a
file.
"""
