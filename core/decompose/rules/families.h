// The rules, a file per family. A rule goes into the table at the end of its file and nowhere else.
#pragma once

#include <span>

#include "core/decompose/support/call.h"

namespace ltc::decompose {

using Family = std::span<const Decomposition> (*)();
std::span<const Decomposition> canonical_forms();  // mixed dtypes, numbers and options of ops that are minimal
std::span<const Decomposition> elementwise();
std::span<const Decomposition> activations();
std::span<const Decomposition> reductions();
std::span<const Decomposition> movement();
std::span<const Decomposition> indexing();
std::span<const Decomposition> linear_algebra();
std::span<const Decomposition> normalization();
std::span<const Decomposition> convolutions();
std::span<const Decomposition> pooling();
std::span<const Decomposition> interpolation();
std::span<const Decomposition> padding();
std::span<const Decomposition> losses();
std::span<const Decomposition> special_functions();
std::span<const Decomposition> segments();
std::span<const Decomposition> bags();
std::span<const Decomposition> distances();
std::span<const Decomposition> bits();
std::span<const Decomposition> bessel_functions();
std::span<const Decomposition> polynomials();
std::span<const Decomposition> attentions();
std::span<const Decomposition> recurrent();
std::span<const Decomposition> factorizations();
std::span<const Decomposition> orthogonal();
std::span<const Decomposition> transformers();
std::span<const Decomposition> sampling();
std::span<const Decomposition> optimizers();
std::span<const Decomposition> fourier_transforms();  // on complex numbers: not one of the families below

inline constexpr Family kFamilies[] = {canonical_forms,  elementwise,       activations,  reductions, movement,       indexing,
                                       linear_algebra,   normalization,     convolutions, pooling,    interpolation,  padding,
                                       losses,           special_functions, segments,     bags,       distances,      bits,
                                       bessel_functions, polynomials,       attentions,   recurrent,  factorizations, orthogonal,
                                       transformers,     sampling,          optimizers};

}  // namespace ltc::decompose
