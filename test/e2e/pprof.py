# SPDX-License-Identifier: MIT
"""An independent reader of pprof files: gzip, protobuf wire format, profile.proto.

Written from the format's description, sharing nothing with the encoder under test. Strict: a
malformed field, an index outside the string table or an unknown location is an error.
"""
import gzip
from collections import defaultdict
from dataclasses import dataclass, field

# profile.proto, message Profile
SAMPLE_TYPE, SAMPLE, MAPPING, LOCATION, FUNCTION, STRING_TABLE = 1, 2, 3, 4, 5, 6
TIME_NANOS, DURATION_NANOS, PERIOD_TYPE, PERIOD, COMMENT, DEFAULT_TYPE = 9, 10, 11, 12, 13, 14


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & 0xFFFFFFFFFFFFFFFF, at
        shift += 7
        if shift > 63:
            raise ValueError("varint longer than 10 bytes")


def signed(value):
    return value - (1 << 64) if value >> 63 else value


def fields(data):
    """(number, value) pairs of a message: int for a varint, bytes for a length-delimited field."""
    at, end = 0, len(data)
    while at < end:
        tag, at = varint(data, at)
        number, wire_type = tag >> 3, tag & 7
        if wire_type == 0:
            value, at = varint(data, at)
        elif wire_type == 2:
            size, at = varint(data, at)
            value = data[at:at + size]
            if len(value) != size:
                raise ValueError("field runs past the end of its message")
            at += size
        else:
            raise ValueError(f"wire type {wire_type} has no place in profile.proto")
        yield number, value


def numbers(value):
    """A repeated integer field, packed or not."""
    if isinstance(value, int):
        return [value]
    result, at = [], 0
    while at < len(value):
        number, at = varint(value, at)
        result.append(number)
    return result


def grouped(data):
    groups = defaultdict(list)
    for number, value in fields(data):
        groups[number].append(value)
    return groups


def last(groups, number, default=0):
    return groups[number][-1] if groups.get(number) else default


@dataclass
class Mapping:
    start: int
    limit: int
    offset: int
    file: str
    build_id: str
    has_functions: bool


@dataclass
class Location:
    mapping: Mapping
    address: int
    functions: list  # innermost inlined first; empty: not named


@dataclass
class Sample:
    stack: list      # names, leaf first; "0xADDRESS" where there is no name
    locations: list
    values: tuple
    labels: dict     # string labels
    numbers: dict    # numeric labels: key → (number, unit)


@dataclass
class Profile:
    types: list = field(default_factory=list)  # (type, unit)
    samples: list = field(default_factory=list)
    mappings: list = field(default_factory=list)
    locations: dict = field(default_factory=dict)
    comments: list = field(default_factory=list)
    period_type: tuple = ("", "")
    period: int = 0
    time_nanos: int = 0
    duration_nanos: int = 0
    default_type: str = ""

    def index(self, type_name):
        return [name for name, _ in self.types].index(type_name)

    def total(self, type_name, where=lambda sample: True):
        index = self.index(type_name)
        return sum(sample.values[index] for sample in self.samples if where(sample))

    def flat(self, type_name):
        """Totals by leaf function."""
        return self.totals(type_name, lambda sample: sample.stack[:1])

    def cum(self, type_name):
        """Totals by every function on the stack, recursion counted once."""
        return self.totals(type_name, lambda sample: set(sample.stack))

    def by_label(self, key, type_name):
        """Totals by the value of a string label; None: samples without it."""
        return self.totals(type_name, lambda sample: [sample.labels.get(key)])

    def totals(self, type_name, keys_of):
        index, totals = self.index(type_name), defaultdict(int)
        for sample in self.samples:
            for key in keys_of(sample):
                totals[key] += sample.values[index]
        return totals

    def label_values(self, key):
        return {sample.labels[key] for sample in self.samples if key in sample.labels}

    def with_function(self, name):
        return [sample for sample in self.samples if name in sample.stack]

    def comment(self, key):
        """The value of the comment `key=value`, or None."""
        for comment in self.comments:
            if comment.startswith(key + "="):
                return comment[len(key) + 1:]
        return None


class Decoder:
    def __init__(self, data):
        self.top = grouped(data)
        self.strings = [text.decode("utf-8") for text in self.top[STRING_TABLE]]
        if not self.strings or self.strings[0]:
            raise ValueError("the string table must start with the empty string")

    def value_type(self, data):
        groups = grouped(data)
        return self.strings[last(groups, 1)], self.strings[last(groups, 2)]

    def mapping(self, data):
        groups = grouped(data)
        return last(groups, 1), Mapping(
            last(groups, 2), last(groups, 3), last(groups, 4), self.strings[last(groups, 5)],
            self.strings[last(groups, 6)], bool(last(groups, 7)))

    def functions(self):
        result = {}
        for data in self.top[FUNCTION]:
            groups = grouped(data)
            result[last(groups, 1)] = self.strings[last(groups, 2)]
        return result

    def location(self, data, mappings, functions):
        groups = grouped(data)
        names = [functions[last(grouped(line), 1)] for line in groups[4]]
        mapping_id = last(groups, 2)
        return last(groups, 1), Location(mappings[mapping_id] if mapping_id else None,
                                         last(groups, 3), names)

    def label(self, data, labels, number_labels):
        groups = grouped(data)
        key = self.strings[last(groups, 1)]
        if key in labels or key in number_labels:
            raise ValueError(f"two labels {key} on one sample")
        if groups[2] and last(groups, 2):
            labels[key] = self.strings[last(groups, 2)]
        else:
            number_labels[key] = (signed(last(groups, 3)), self.strings[last(groups, 4)])

    def sample(self, data, locations, n_types):
        ids, values, labels, number_labels = [], [], {}, {}
        for number, value in fields(data):
            if number == 1:
                ids += numbers(value)
            elif number == 2:
                values += map(signed, numbers(value))
            elif number == 3:
                self.label(value, labels, number_labels)
        if len(values) != n_types:
            raise ValueError(f"a sample with {len(values)} values instead of {n_types}")
        places = [locations[location_id] for location_id in ids]
        stack = [name for place in places
                 for name in place.functions or [f"0x{place.address:x}"]]
        return Sample(stack, places, tuple(values), labels, number_labels)

    def profile(self):
        top = self.top
        mappings = dict(map(self.mapping, top[MAPPING]))
        functions = self.functions()
        locations = dict(self.location(data, mappings, functions) for data in top[LOCATION])
        types = [self.value_type(data) for data in top[SAMPLE_TYPE]]
        return Profile(
            types=types,
            samples=[self.sample(data, locations, len(types)) for data in top[SAMPLE]],
            mappings=[mappings[key] for key in mappings],
            locations=locations,
            comments=[self.strings[index] for value in top[COMMENT] for index in numbers(value)],
            period_type=self.value_type(last(top, PERIOD_TYPE, b"")),
            period=signed(last(top, PERIOD)),
            time_nanos=signed(last(top, TIME_NANOS)),
            duration_nanos=signed(last(top, DURATION_NANOS)),
            default_type=self.strings[last(top, DEFAULT_TYPE)])


def read(path):
    with open(path, "rb") as file:
        return Decoder(gzip.decompress(file.read())).profile()
