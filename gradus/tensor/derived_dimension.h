/// Derived dimensions: arithmetic of dimensions that gives no polynomial of symbols, such as division with a remainder
/// or the larger of two. Each such value is a factor of its own in polynomials, so it is added, multiplied, compared
/// and evaluated like a symbol: ((s0+1)/2) is rounded down, ((s0-3)^0) is the larger of s0-3 and 0, ((s0)^^) counts
/// doublings. Equal ones are recognised in easy cases: halves of halves are quarters.
#pragma once
#include "gradus/tensor/dimension.h"

namespace gradus::dimension {

/// The largest whole number not above a / b. `b` must not be negative. If it is 0, the result is 0, or the quotient of
/// the polynomials.
std::int64_t floor_divide(std::int64_t a, std::int64_t b);
/// The smallest whole number not below a / b.
std::int64_t ceil_divide(std::int64_t a, std::int64_t b);
/// a minus the largest multiple of b that is not above it: in [0, b), also for a negative a.
std::int64_t modulo(std::int64_t a, std::int64_t b);
std::int64_t maximum(std::int64_t a, std::int64_t b);
std::int64_t minimum(std::int64_t a, std::int64_t b);
/// Number of doublings that take 1 to at least d: 0 for 0 and 1, 1 for 2, 2 for 3 and 4.
std::int64_t doublings(std::int64_t d);
/// A number that may be negative, for computing.
std::int64_t of_number(std::int64_t n);

/// True if `d` is proven not to be negative, whatever the extents of its symbols are. False: it is not known.
bool is_never_negative(std::int64_t d);

}  // namespace gradus::dimension
