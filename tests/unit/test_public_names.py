import icestats


def test_the_public_names_are_these():
    """A name that is added or lost is a change of the contract."""
    assert sorted(icestats.__all__) == [
        "CallError",
        "CatalogError",
        "ColumnNotFoundError",
        "CommitError",
        "CommitReport",
        "FilterError",
        "Histogram",
        "IcestatsError",
        "MetadataError",
        "PuffinFormatError",
        "SnapshotNotFoundError",
        "SparkUnavailableError",
        "Statistics",
        "StatisticsMissingError",
        "Table",
        "TableNotFoundError",
        "UnsupportedError",
        "__version__",
        "demo",
        "errors",
        "load",
        "preview",
        "schemas",
        "writers",
    ]
    assert all(hasattr(icestats, name) for name in icestats.__all__)
