"""The parts of answers: Arrow schemas and arrays, findings, text and HTML.

Plain values come in; Arrow arrays, text and HTML go out. Nothing here knows what an Iceberg table is, or reads a file.
"""
