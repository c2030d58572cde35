"""Sizes of an exported function that vary from call to call: what ``dynamic_shapes`` says, and formulas for what follows from them."""

import itertools
import math
from dataclasses import dataclass, field

import torch

LARGEST_DIVISOR = 32  # of a formula of one dimension
LARGEST_DIVISOR_OF_PRODUCTS = 4  # that of a generator's offset, which counts blocks of four numbers
LARGEST_RECORDED = 4096  # the end of a range is recorded up to here


class Unproved(Exception):
    """More sizes are to be recorded before a formula is certain."""


@dataclass
class Dimension:
    name: str
    min: int
    max: int | None
    example: int
    is_named_only: bool  # where its range begins was not given

    def recorded_sizes(self, consecutive: int) -> list[int]:
        """The sizes at which the function is recorded besides the example: those behind it, then those before it, and the ends."""
        last = math.inf if self.max is None else self.max
        sizes = [self.example + step for step in range(1, consecutive) if self.example + step <= last]
        sizes += [size for size in range(self.example - 1, 1, -1) if size >= self.min][: consecutive - 1 - len(sizes)]
        sizes += [2 * self.example + 1, self.min]
        if last <= LARGEST_RECORDED:
            sizes.append(self.max)
        return list(dict.fromkeys(size for size in sizes if self.min <= size <= last and size != self.example))

    def json(self) -> dict:
        return {"name": self.name, "min": self.min, **({} if self.max is None else {"max": self.max}), "example": self.example}


@dataclass(frozen=True)
class Formula:
    """floor((scale * the product of the dimensions + offset) / divisor). A dimension may be there twice."""

    of: tuple[int, ...]
    scale: int = 1
    offset: int = 0
    divisor: int = 1

    def value(self, sizes) -> int:
        product = math.prod(sizes[index] for index in self.of) if self.of else 0
        return (self.scale * product + self.offset) // self.divisor

    @property
    def is_plain(self) -> bool:
        return len(self.of) == 1 and (self.scale, self.offset, self.divisor) == (1, 0, 1)

    def json(self, names):
        if not self.of:
            return self.offset
        if self.is_plain:
            return names[self.of[0]]
        more = {"scale": (self.scale, 1), "offset": (self.offset, 0), "divisor": (self.divisor, 1)}
        return {"of": [names[index] for index in self.of], **{key: value for key, (value, usual) in more.items() if value != usual}}

    def text(self, names) -> str:
        text = "*".join([*([str(self.scale)] if self.scale != 1 else []), *(names[index] for index in self.of)])
        text = f"({text}{self.offset:+})" if self.offset else text
        return text if self.divisor == 1 else f"floor({text}/{self.divisor})"


@dataclass
class DynamicShapes:
    """The dimensions, and by input which dim is which of them."""

    dimensions: list[Dimension] = field(default_factory=list)
    places: list[dict[int, int]] = field(default_factory=list)

    @property
    def example(self) -> tuple[int, ...]:
        return tuple(dimension.example for dimension in self.dimensions)

    def recorded_sizes(self, consecutive: int) -> list[tuple[int, ...]]:
        """Each dimension by itself, then all of them at once."""
        alone = [self.example[:index] + (size,) + self.example[index + 1 :]
                 for index, dimension in enumerate(self.dimensions) for size in dimension.recorded_sizes(consecutive)]  # fmt: skip
        together = itertools.zip_longest(*(dimension.recorded_sizes(consecutive)[:3] for dimension in self.dimensions))
        together = [tuple(old if new is None else new for old, new in zip(self.example, sizes)) for sizes in together]
        return list(dict.fromkeys(alone + together))

    def has(self, sizes) -> bool:
        """Whether they are in the ranges."""
        return all(one.min <= size for one, size in zip(self.dimensions, sizes))

    def ones(self, sizes) -> list[Dimension]:
        """The dimensions that are 1 or 0 there, and are not in the example."""
        return [one for one, size in zip(self.dimensions, sizes) if size < 2 and size != one.example]

    def inputs_at(self, inputs, sizes):
        """The inputs with other sizes: rows come again, so that whole numbers stay what they may be."""
        resized = []
        for tensor, places in zip(inputs, self.places):
            tensor = tensor.cpu()
            for dim, index in places.items():
                tensor = tensor.index_select(dim, torch.arange(sizes[index]) % tensor.shape[dim])
            resized.append(tensor.contiguous())
        return resized

    def shape(self, number, tensor) -> list:
        return [self.dimensions[self.places[number][dim]].name if dim in self.places[number] else size for dim, size in enumerate(tensor.shape)]


def read_dynamic_shapes(given, paths, inputs, input_names) -> DynamicShapes:
    """`paths`: by input, the name of its parameter, its number among the arguments, and the keys inside of it."""
    shapes = DynamicShapes()
    if isinstance(given, dict):
        unknown = [name for name in given if name not in {parameter for parameter, _, _ in paths}]
        if unknown:
            raise ValueError(f"dynamic_shapes has {unknown[0]!r}, and the arguments with tensors are {sorted({path[0] for path in paths})}")
    elif given is not None and not isinstance(given, (tuple, list)):
        raise TypeError(f"dynamic_shapes is a {type(given).__name__}, and is to be a dict of parameters, or a tuple of arguments")
    for (parameter, number, keys), tensor, name in zip(paths, inputs, input_names):
        spec = given
        for key in [parameter if isinstance(given, dict) else number, *keys]:
            spec = _inside(spec, key)
        if isinstance(spec, (tuple, list)):
            if len(spec) != tensor.dim():
                raise ValueError(f"dynamic_shapes of {name} has {len(spec)} dims, and the tensor {tensor.dim()}")
            spec = dict(enumerate(spec))
        if not isinstance(spec, (dict, type(None))):
            raise TypeError(f"dynamic_shapes of {name} is {spec!r}, and is to be a dict of dims")
        shapes.places.append(_places(shapes.dimensions, spec or {}, tensor, name))
    return shapes


def _inside(spec, key):
    if isinstance(spec, dict):
        return spec.get(key)
    if isinstance(spec, (tuple, list)):
        return spec[key] if key is not None and key < len(spec) else None
    return spec


def _places(dimensions, spec, tensor, name) -> dict[int, int]:
    places = {}
    for dim, what in spec.items():
        if not isinstance(dim, int) or not -tensor.dim() <= dim < tensor.dim():
            raise ValueError(f"dynamic_shapes of {name} has dim {dim!r}, and the tensor has {tensor.dim()} dims")
        dim %= tensor.dim()
        size = tensor.shape[dim]
        made = _dimension(what, size, f"dynamic_shapes of {name}, dim {dim}")
        if made is None:
            continue
        known = next((index for index, one in enumerate(dimensions) if one.name == made.name), None)
        if known is not None and dimensions[known] != made:
            old = dimensions[known]
            raise ValueError(f"dynamic_shapes: {made.name} is {size} in {name}, from {made.min} to {made.max}, and before it was "
                             f"{old.example}, from {old.min} to {old.max}")  # fmt: skip
        if known is None:
            dimensions.append(made)
        places[dim] = len(dimensions) - 1 if known is None else known
    return places


def _dimension(what, size, where):
    """None for a fixed size."""
    if what is None or isinstance(what, int) or str(getattr(what, "type", "")).endswith("STATIC"):
        return None
    if isinstance(what, str):
        return Dimension(what, min(size, 1), None, size, True)
    if type(what).__name__ == "_DerivedDim" or not hasattr(what, "min") or not hasattr(what, "__name__"):
        raise TypeError(f"{where} is {what}: give a name, or a torch.export.Dim with a name")
    least, most = what.min, what.max
    most = most if isinstance(most, int) and most < 2**62 else None  # torch.export has a number for infinity
    if size < (least or 0) or (most is not None and size > most):
        raise ValueError(f"{where}: {what.__name__} is {size} in the arguments, and is to be from {least} to {most}")
    return Dimension(what.__name__, least or min(size, 1), most, size, not least)


class Formulas:
    """Formulas for numbers that are known by example. A product may have factors that are sizes themselves, as the rows of a batch
    of pooled images: these become dimensions that follow from the others."""

    def __init__(self, dimensions: list[Dimension], sizes: list[tuple[int, ...]], numbers: list[tuple[int, ...]]):
        """`numbers`: each at all of the `sizes`, of which the first are the example's. Raises Unproved, or ValueError for a number
        that no formula gives."""
        self.names = [dimension.name for dimension in dimensions]
        self.derived, self.example = [], sizes[0]
        self._sizes, self._known = sizes, {}
        numbers = [(self._changes(values), values) for values in dict.fromkeys(numbers)]
        factors = {index: [index] for index in range(len(dimensions))}
        for changes, values in sorted(numbers, key=lambda number: len(number[0])):  # stable
            self._known[values] = formula = self._find(changes, values, factors)
            if len(changes) == 1 and not formula.is_plain and len(set(formula.of)) == 1 and formula.of[0] == changes[0]:
                factors[changes[0]].append(formula)

    def __getitem__(self, values) -> Formula:
        return self._known[tuple(values)]

    def extended(self, sizes) -> list[int]:
        """With those that follow from them."""
        extended = list(sizes)
        for formula in self.derived:
            extended.append(formula.value(extended))
        return extended

    def json(self) -> list[dict]:
        """The dimensions that follow from others."""
        return [{"name": name, "is": formula.json(self.names)} for name, formula in zip(self.names[len(self.example) :], self.derived)]

    def _changes(self, values) -> tuple[int, ...]:
        """The dimensions that change the number, where each of them is changed alone."""
        base, alone = self.example, {}
        for size, value in zip(self._sizes, values):
            changed = [index for index in range(len(base)) if size[index] != base[index]]
            if len(changed) == 1:
                alone.setdefault(changed[0], set()).add(value)
        return tuple(sorted(index for index, found in alone.items() if found != {values[0]}))

    def _find(self, changes, values, factors) -> Formula:
        if len(set(values)) == 1:
            return Formula((), offset=values[0])
        choices = [[list(choice) for count in (1, 2) for choice in itertools.combinations_with_replacement(factors[index], count)] for index in changes]
        for chosen in sorted(itertools.product(*choices), key=lambda chosen: sum(map(len, chosen))) if changes else ():
            of = [factor for choice in chosen for factor in choice]
            points = [(math.prod(size[one] if isinstance(one, int) else one.value(size) for one in of), value) for size, value in zip(self._sizes, values)]
            if found := _fit_points(points, LARGEST_DIVISOR if of == [changes[0]] else LARGEST_DIVISOR_OF_PRODUCTS):
                return Formula(tuple(one if isinstance(one, int) else self._derive(one) for one in of), *found)
        raise ValueError(f"a size of it is {', '.join(map(str, values))} where the inputs' are {', '.join(map(str, self._sizes))}: it "
                         "follows no formula that an archive has")  # fmt: skip

    def _derive(self, formula) -> int:
        if formula not in self.derived:
            self.names.append(formula.text(self.names))
            self.derived.append(formula)
        return len(self.example) + self.derived.index(formula)


def _fit_points(points, largest_divisor):
    (low, at_low), (high, at_high) = min(points), max(points)
    for divisor in range(1, largest_divisor + 1) if low < high else ():
        near = round(divisor * (at_high - at_low) / (high - low))
        for scale in (near, near - 1, near + 1):
            least = max(divisor * value - scale * point for point, value in points)
            most = min(divisor * value - scale * point for point, value in points) + divisor - 1
            if scale and least == most:
                return scale, least, divisor
            if scale and least < most:
                raise Unproved
    return None
