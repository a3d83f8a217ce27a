/// Arithmetic of dimensions that is no polynomial of symbols: what is divided with a remainder, the larger of two. Each
/// such value is a factor of its own in the polynomials that dimensions are, so that it is added, multiplied, compared
/// and evaluated like a symbol: ((s0+1)/2) is rounded down, ((s0-3)^0) is the larger of s0-3 and 0, ((s0)^^) counts
/// doublings. Equal ones are found to be equal as far as that is easy: halves of halves are quarters.
#pragma once
#include "gradus/tensor/dimension.h"

namespace gradus::dimension {

/// The largest whole number that is not above a / b. `b` must not be negative; where it is 0, the result is 0, or what
/// dividing the polynomials gives.
std::int64_t floor_divide(std::int64_t a, std::int64_t b);
/// The smallest whole number that is not below a / b.
std::int64_t ceil_divide(std::int64_t a, std::int64_t b);
/// a without the largest multiple of b that is not above it: in [0, b), also of a negative a.
std::int64_t modulo(std::int64_t a, std::int64_t b);
std::int64_t maximum(std::int64_t a, std::int64_t b);
std::int64_t minimum(std::int64_t a, std::int64_t b);
/// How often 1 has to be doubled to be at least d: 0 of 0 and 1, 1 of 2, 2 of 3 and 4.
std::int64_t doublings(std::int64_t d);
/// A number that may be negative, to compute with.
std::int64_t of_number(std::int64_t n);

/// Whether `d` is proven not to be negative, whatever the extents of its symbols are. False: that is not known.
bool is_never_negative(std::int64_t d);

}  // namespace gradus::dimension
