// The README.md of an exported folder: its format, for those who have nothing else of this project.
#include "pjrt/export/folder.h"

namespace ltc::pjrt {

const char* const kFolderReadme = R"(# Op tests as StableHLO

Each module is a small program of StableHLO. Its inputs and expected outputs are files that NumPy reads. `index.json` names them all.

    {"name": "neg_f32.3", "check": "Ops.neg_f32", "op": "aten::neg",
     "graph": "the program before it was lowered, for people",
     "module": "neg_f32.3.mlir",
     "inputs":  [{"file": "neg_f32.3.in0.npy", "dtype": "f32", "shape": [2, 3]}],
     "outputs": [{"file": "neg_f32.3.out0.npy", "dtype": "f32", "shape": [2, 3], "ulps": 0, "floor": 0}]}

`not_exported` lists the cases that have no module, each with its reason.

## Modules

- The text is MLIR in generic form, with the dialects `func`, `stablehlo` and `chlo` (`erf` and `lgamma`). The function is `main`.
- Arguments and results are in the order of the index. All shapes are static, all arrays dense and row-major.
- Some modules have a last argument `%scalars` of `i64`. Its elements are numbers: an integer, 0 or 1, or the bits of an `f64`.
- A module that reads indices may have one result more, of type `2xi64`. It says which check of indices failed. In these files all
  indices are good, so it is `[-1, -1]`.

XLA needs two flags that make it exact, in the debug options of its compile options: `xla_allow_excess_precision=false`, and for CPUs
`xla_cpu_enable_fast_min_max=false`. One replica and one partition run a module.

## Arrays

Files are `.npy`, version 1.0, little-endian. The dtype is that of the index: `bool`, `u8`, `i8`, `i16`, `i32`, `i64`, `f16`, `f32`, `f64`
are NumPy's types of that size. NumPy has no `bf16`: such a file holds its 16 bits as `uint16`.

    array = numpy.load(file).view(ml_dtypes.bfloat16)

## Comparison

Every output is compared, element by element.

- Integers and booleans are equal.
- A NaN is expected exactly where there is one, with any bits. Infinities are equal.
- Floats with `"ulps": 0` are equal, and zeros have the same sign.
- Other floats are good if they are equal, or if

      |got - expected| <= ulps * epsilon * max(|expected|, floor) + smallest

  `epsilon` is the distance from 1 to the next number of the dtype: 2^-10 for `f16`, 2^-7 for `bf16`, 2^-23 for `f32`, 2^-52 for `f64`.
  `smallest` is the dtype's smallest normal number, so results below it may be zero. The sign of zero does not count here.

Expected values come from plain functions in `long double`, rounded once at the end of each op.
)";

}  // namespace ltc::pjrt
