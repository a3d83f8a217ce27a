/// The remainder of a truncating division, in f64.
#include "gradus/scalar/formulas_parts.h"
#include "gradus/scalar/formulas_special.h"

namespace gradus::scalar {

Value fmod(const Value& a, const Value& b) {
  const Value x = abs(convert(a, f64)), y = abs(convert(b, f64));
  // The quotient is rounded before it is truncated, so the remainder may be off by one y.
  const Value q = truncate(x / y);
  const Value r = select(q == 0.0, x, fma(-q, y, x));
  const Value within = select(r < 0.0, r + y, select(r >= y, r - y, r));
  return copy_sign(convert(within, a.type()), a);
}

}  // namespace gradus::scalar
