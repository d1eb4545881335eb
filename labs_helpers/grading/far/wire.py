"""Messages between a judge and an answer: JSON followed by the bytes of memory. Nothing in them is executed.

Data travels by value, arrays by their place in memory (memory.py), and every other object as a number, for which the
other side creates a `Far`: a call of the Far calls the object. Either side may ask while the other waits for its reply.
"""

from __future__ import annotations

import builtins
import json
import select
import struct
from collections.abc import Callable
from time import monotonic
from typing import Any
from weakref import WeakValueDictionary

import numpy as np
import torch

from labs_helpers.course.time_limit import TimeLimit
from labs_helpers.grading.far import known
from labs_helpers.grading.far.memory import DTYPES, Memory, Refused

MOST = 2**30  # bytes of a message
LOOK_S = 0.2
_HEAD = struct.Struct(">QI")
_DATA = (bool, int, str, type(None))


class Lost(RuntimeError):
    """The other side has ended, or has sent something that is not a message."""


class Far:
    """Stands for an object of the other side. Allowed attributes, context managers and iteration work."""

    def __init__(self, wire: Wire, number: int) -> None:
        self.__dict__["_wire"], self.__dict__["_number"] = wire, number

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return self._wire.ask({"do": "get", "object": self._number, "name": name})

    def _method(self, name: str, *args: Any) -> Any:
        found = self._wire.ask({"do": "method", "object": self._number, "name": name}, args)
        if name == "__getitem__" and isinstance(found, (list, dict)):
            self._wire.taken.append((self, args[0], _Seen(found)))
        return found

    def __exit__(self, *_: Any) -> None:
        self._method("__exit__", None, None, None)

    @classmethod
    def __torch_function__(cls, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Compute with a tensor of the other side, as `torch.mul(loss, 0.5)` does."""
        operation = _ARITHMETIC.get(function.__name__)
        if operation is None or kwargs or len(args) != 2:
            return NotImplemented
        left, right = args
        return (
            left._method(f"__{operation}__", right)
            if isinstance(left, Far)
            else right._method(f"__r{operation}__", left)
        )

    def reached(self) -> list[torch.Tensor]:
        """The tensors that this object of an answer holds."""
        return self._wire.reached(self)


_ARITHMETIC = {"add": "add", "div": "truediv", "divide": "truediv", "mul": "mul", "multiply": "mul", "sub": "sub"}


def _asks(name: str) -> Callable[..., Any]:
    return lambda self, *args: self._method(name, *args)


METHODS = frozenset(
    "__enter__ __exit__ __iter__ __next__ __getitem__ __setitem__ __contains__ __truediv__ __mul__ __rmul__ __add__ "
    "__radd__ __sub__ __neg__ __float__ __int__".split()
)
for _name in METHODS - {"__exit__"}:
    setattr(Far, _name, _asks(_name))


class FarCall(Far):
    """Stands for a function."""

    def __call__(self, *args: Any, **named: Any) -> Any:
        return self._wire.ask({"do": "call", "object": self._number}, args, named)


class Wire:
    """One end of a channel. Each side defines in a subclass how it serves requests.

    deadline: the time, by `monotonic`, at which this side stops waiting.
    """

    def __init__(self, socket: Any, memory: Memory, deadline: float | None = None) -> None:
        self.socket, self.memory, self.deadline, self.began = socket, memory, deadline, monotonic()
        self.own: dict[int, Any] = {}  # objects of this side, by number
        self.numbers: dict[int, int] = {}  # and their numbers, by id
        self.far: WeakValueDictionary[int, Far] = WeakValueDictionary()  # stand-ins for objects of the other side
        self.copies: dict[int, Any] = {}  # objects of the other side that came by value
        self.copied: dict[int, int] = {}  # and their numbers, by id
        self.noted: list[Any] | None = None  # lists, dicts and sets among the arguments that are being sent,
        self.received: dict[int, _Seen] | None = None  # and among those that are being read, by their number
        self.returned: list[_Seen] = []  # those in the last result that this side gave,
        self.results: dict[int, Any] = {}  # and in the last one that it got
        self.taken: list[tuple[Far, Any, _Seen]] = []  # those that came out of an object of the other side, by key

    # what a subclass says

    def has_ended(self) -> bool:
        """Return whether the process at the other end is known to be gone."""
        return False

    def serve(self, asked: dict[str, Any]) -> Any:
        """Serve a request that neither calls an object nor reads its attributes."""
        raise ValueError(asked["do"])

    def may_get(self, one: Any, name: str) -> bool:
        """Return True if the other side may read this attribute."""
        return True

    def graph(self, tensor: torch.Tensor) -> dict[str, Any]:
        """Describe a result that has a backward pass. Raise Refused on the judge's side, whose graphs must not leave
        it."""
        raise Refused("a tensor with a graph")

    def with_graph(self, said: dict[str, Any]) -> Any:
        """Return the result that `graph` described."""
        raise Refused("a tensor with a graph")

    def reached(self, one: Far) -> list[torch.Tensor]:
        """Return the tensors that an object of the other side holds, as far as this side may know."""
        return []

    # messages

    def ask(self, message: dict[str, Any], args: tuple[Any, ...] = (), named: dict[str, Any] | None = None) -> Any:
        """Ask, and return the reply or raise the error that came back. Serve requests that arrive before the reply."""
        self._put_back()
        noted = self.noted = list[Any]()
        text = {"args": [self.packed(one) for one in args],
                "named": {name: self.packed(one) for name, one in (named or {}).items()}}  # fmt: skip
        self.noted = None
        self.send(message | text)
        while "do" in (told := self.receive()):
            self.answer(told)
        for number, changed in told.get("changed", ()):
            _become(noted[number], self.unpacked(changed))
        for number, changed in told.get("altered", ()):
            _become(self.results[number], self.unpacked(changed))
        if "raised" in told:
            raise self.error(told["raised"])
        received = self.received = dict[int, _Seen]()
        value, self.received = self.unpacked(told["is"]), None
        if message["do"] == "answer":
            self.results = {number: one.value for number, one in received.items()}
        return value

    def _put_back(self) -> None:
        """Tell the other side about lists and dicts from its objects that have changed here."""
        taken, self.taken = self.taken, []
        for far, key, seen in taken:
            if seen.has_changed():
                far._method("__setitem__", key, seen.value)

    def answer(self, asked: dict[str, Any]) -> None:
        received = self.received = dict[int, _Seen]()
        noted = list[Any]()
        try:
            value = self._done(asked)  # alive until its description is sent
            self.noted = noted if asked["do"] == "answer" else None
            found: dict[str, Any] = {"is": self.packed(value)}
            self.noted = None
            self._put_back()
        except (Lost, Refused, TimeLimit):
            raise
        except (Exception, KeyboardInterrupt, SystemExit) as error:
            found = {"raised": self.said(error)}
        self.received = self.noted = None
        found["changed"] = [[number, self.packed(one.value)] for number, one in received.items() if one.has_changed()]
        if asked["do"] == "answer":  # what it returned before, it may have changed now
            returned, self.returned = enumerate(self.returned), [*map(_Seen, noted)]
            found["altered"] = [[number, self.packed(one.value)] for number, one in returned if one.has_changed()]
        self.send(found)

    def _done(self, asked: dict[str, Any]) -> Any:
        args = [self.unpacked(one) for one in asked.get("args", ())]
        named = {str(name): self.unpacked(one) for name, one in asked.get("named", {}).items()}
        self.received = None
        if asked["do"] == "call":
            return self.own[asked["object"]](*args, **named)
        if asked["do"] == "method" and asked["name"] in METHODS:
            return getattr(self.own[asked["object"]], asked["name"])(*args)
        if asked["do"] == "get":
            one, name = self.own[asked["object"]], str(asked["name"])
            if name.startswith("_") or not self.may_get(one, name):
                raise AttributeError(f"{type(one).__name__!r} object has no attribute {name!r}")
            return getattr(one, name)
        return self.serve(asked | {"args": args, "named": named})

    def said(self, error: BaseException) -> dict[str, Any]:
        kind = next(kind.__name__ for kind in type(error).__mro__ if kind.__module__ == "builtins")
        return {"kind": kind, "text": str(error)[:4000]}

    def error(self, said: dict[str, Any]) -> BaseException:
        kind = getattr(builtins, str(said["kind"]), None)
        plain = isinstance(kind, type) and issubclass(kind, (Exception, KeyboardInterrupt))
        plain = plain and not issubclass(kind, UnicodeError)
        text = str(said["text"])[:4000]
        return kind(text) if plain else RuntimeError(f"{said['kind']:.40}: {text}")  # type: ignore[misc]

    def send(self, message: dict[str, Any]) -> None:
        news, content = self.memory.news()
        text = json.dumps(message | news).encode()
        self._write(_HEAD.pack(len(text) + len(content), len(text)) + text + content)

    def receive(self) -> dict[str, Any]:
        whole, head = _HEAD.unpack(self._read(_HEAD.size))
        if whole > MOST or head > whole:
            raise Lost("no message")
        body = self._read(whole)
        try:
            message = dict(json.loads(body[:head]))
            self.memory.take(message, body[head:])
            return message
        except (ValueError, KeyError, TypeError, RecursionError, Refused) as error:
            raise Lost(f"no message: {error}") from None

    def _write(self, content: bytes) -> None:
        view = memoryview(content)
        while view:
            self._wait([], [self.socket])
            try:
                view = view[self.socket.send(view[: 2**20]) :]
            except OSError as error:
                raise Lost(str(error)) from None

    def _read(self, size: int) -> bytes:
        parts, left = [], size
        while left:
            self._wait([self.socket], [])
            try:
                part = self.socket.recv(min(left, 2**20))
            except OSError as error:
                raise Lost(str(error)) from None
            if not part:
                raise Lost("its process ended")
            parts.append(part)
            left -= len(part)
        return b"".join(parts)

    def _wait(self, read: list[Any], write: list[Any]) -> None:
        while not any(select.select(read, write, [], LOOK_S)):
            if self.has_ended():
                raise Lost("its process ended")  # a process that it left behind may hold the channel open
            if self.deadline is not None and monotonic() > self.deadline:
                error = TimeLimit("it took too long")
                error.seconds = round(self.deadline - self.began, 1)
                raise error

    # values

    def packed(self, value: Any) -> Any:
        """Return a value as JSON."""
        if isinstance(value, _DATA) and type(value) in _DATA:
            return value
        if type(value) is float:
            return {"float": value.hex()}
        if type(value) is complex:
            return {"complex": [value.real.hex(), value.imag.hex()]}
        if type(value) in (tuple, frozenset, torch.Size):
            return {type(value).__name__: [self.packed(one) for one in value]}
        if isinstance(value, list) or type(value) is set:
            return {self._note(value): [self.packed(one) for one in value]}
        if type(value) is dict:
            return {self._note(value): [[self.packed(key), self.packed(one)] for key, one in value.items()]}
        if type(value) in (range, slice):
            return {type(value).__name__: [self.packed(n) for n in (value.start, value.stop, value.step)]}
        if isinstance(value, torch.Tensor) or type(value) is np.ndarray:
            try:
                if isinstance(value, torch.Tensor) and value.grad_fn is not None:
                    return {"graph": self.graph(value)}
                return {"array": self.memory.described(value)}
            except Refused:
                return self._object(value)
        if isinstance(value, np.generic):
            return {"number": [str(value.dtype), value.tobytes().hex()]}
        if (name := known.name_of(value)) is not None:
            return {"named": [*name]}
        if isinstance(value, Far) and value._wire is self:
            return {"yours": value._number}
        if (plain := known.plain(value)) is not None:
            return self.packed(plain)
        return self._object(value)

    def _note(self, value: Any) -> str:
        """Return the kind of a mutable collection, and the number by which the reply reports a change to it."""
        kind = next(kind.__name__ for kind in (list, dict, set) if isinstance(value, kind))
        if self.noted is None:
            return kind
        self.noted.append(value)
        return f"{kind}:{len(self.noted) - 1}"

    def _object(self, value: Any) -> dict[str, Any]:
        if id(value) in self.copied:
            return {"yours": self.copied[id(value)]}
        first = id(value) not in self.numbers
        number = self.numbers.setdefault(id(value), len(self.own))
        self.own[number] = value
        said: dict[str, Any] = {"object": number, "call": callable(value)}
        if first and (fields := known.fields(value)):
            kind = type(value)
            said |= {"class": [kind.__module__, kind.__qualname__],
                     "fields": {name: self.packed(getattr(value, name)) for name in fields}}  # fmt: skip
        return said

    def unpacked(self, text: Any) -> Any:
        """Return the value that `packed` wrote. Anything else raises Refused, KeyError, TypeError or ValueError."""
        if isinstance(text, _DATA):
            return text
        if "object" in text:
            return self._far(text)
        if "yours" in text:
            return self.own[text["yours"]]
        ((kind, inner),) = text.items()
        kind, _, number = kind.partition(":")
        if kind in ("list", "dict", "set"):
            parts = [[self.unpacked(part) for part in one] if kind == "dict" else self.unpacked(one) for one in inner]
            value = {"list": list, "dict": dict, "set": set}[kind](parts)
            if number and self.received is not None:
                self.received[int(number)] = _Seen(value)
            return value
        if kind == "float":
            return float.fromhex(inner)
        if kind == "complex":
            return complex(*map(float.fromhex, inner))
        if kind in _COLLECTIONS:
            return _COLLECTIONS[kind](self.unpacked(one) for one in inner)
        if kind in ("range", "slice"):
            return {"range": range, "slice": slice}[kind](*map(self.unpacked, inner))
        if kind == "array":
            return self.memory.made(inner)
        if kind == "graph":
            return self.with_graph(inner)
        if kind == "number" and inner[0] in DTYPES:
            return np.frombuffer(bytes.fromhex(inner[1]), inner[0])[0]
        if kind == "named":
            return known.named(*inner)
        raise Refused(f"a {kind}")

    def _far(self, said: dict[str, Any]) -> Any:
        number = said["object"]
        if type(number) is not int:
            raise Refused("no object")
        if (known_here := self.far.get(number)) is not None:
            return known_here
        if number in self.copies:
            return self.copies[number]
        if "class" in said:
            fields = {str(name): self.unpacked(one) for name, one in said["fields"].items()}
            if (copy := known.made(*said["class"], fields)) is not None:
                self.copies[number], self.copied[id(copy)] = copy, number  # so that it goes back as what it was
                return copy
        made = self.far[number] = (FarCall if said.get("call") else Far)(self, number)
        return made


_COLLECTIONS: dict[str, Callable[..., Any]] = {
    "tuple": tuple, "frozenset": frozenset, "Size": lambda some: torch.Size(list(some)),
}  # fmt: skip


class _Seen:
    """A list, dict or set, and its content on arrival."""

    def __init__(self, value: Any) -> None:
        self.value = value
        self.before = self._content()

    def _content(self) -> list[Any]:
        return [part for item in self.value.items() for part in item] if isinstance(self.value, dict) else [*self.value]

    def has_changed(self) -> bool:
        now = self._content()
        return len(now) != len(self.before) or any(
            one is not other for one, other in zip(now, self.before, strict=True)
        )


def _become(value: Any, other: Any) -> None:
    """Give a list, dict or set the content of another one."""
    value.clear()
    (value.extend if isinstance(value, list) else value.update)(other)
