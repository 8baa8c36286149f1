"""A storage that fails at a call, once or from there on, before or after doing the work: PyIceberg's `py-io-impl`."""

from __future__ import annotations

from dataclasses import dataclass, field

from pyiceberg.io.pyarrow import PyArrowFileIO


@dataclass
class Failure:
    """At which call to fail, and how."""

    at: int | None = None
    for_good: bool = False
    after_the_work: bool = False
    error: type[Exception] = OSError
    calls: list[str] = field(default_factory=list)

    def call(self, name, work):
        self.calls.append(name)
        fails = self.at is not None and (len(self.calls) == self.at or (self.for_good and len(self.calls) > self.at))
        if fails and not self.after_the_work:
            raise self.error(f"the storage failed at {name}")
        result = work()
        if fails:
            raise self.error(f"the storage lost the answer of {name}")
        return result


PLAN = Failure()


class FailingIO(PyArrowFileIO):
    """Local files whose every call goes by `PLAN`."""

    def new_input(self, location):
        return _File(super().new_input(location))

    def new_output(self, location):
        return _File(super().new_output(location))

    def delete(self, location):
        return PLAN.call("delete", lambda: PyArrowFileIO.delete(self, location))


class _File:
    def __init__(self, file):
        self._file = file

    def __getattr__(self, name):
        return getattr(self._file, name)

    def __len__(self):
        return PLAN.call("size", lambda: len(self._file))

    def exists(self):
        return PLAN.call("exists", self._file.exists)

    def open(self, *arguments, **options):
        return _Stream(PLAN.call("open", lambda: self._file.open(*arguments, **options)))

    def create(self, *arguments, **options):
        return _Stream(PLAN.call("create", lambda: self._file.create(*arguments, **options)))


class _Stream:
    def __init__(self, stream):
        self._stream = stream

    def __getattr__(self, name):
        return getattr(self._stream, name)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def read(self, *arguments):
        return PLAN.call("read", lambda: self._stream.read(*arguments))

    def write(self, data):
        return PLAN.call("write", lambda: self._stream.write(data))

    def close(self):
        return None if self._stream.closed else PLAN.call("close", self._stream.close)
