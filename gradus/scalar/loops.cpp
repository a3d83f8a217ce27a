/// The loops of all scalar instructions. On x86-64 each loop is compiled twice, plain and with AVX2 and FMA; both give
/// the same bits. NEON, which every 64-bit ARM has, is in the plain ones.
#include "gradus/scalar/loops.h"
#include <cmath>
#include <cstring>
#include <limits>
#include "gradus/base/wide_vectors.h"

namespace gradus::scalar {
namespace {

#if defined(__x86_64__)
bool has_wide_vectors() { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }
#else
constexpr bool has_wide_vectors() { return false; }
#endif

template <class F, class D, class A>
[[gnu::always_inline]] inline void walk(D* d, const A* a, const A* b, const A* c, std::int64_t n) {
#pragma GCC ivdep
  for (std::int64_t i = 0; i < n; ++i) {
    if constexpr (F::arity == 1) d[i] = F::template of<D>(a[i]);
    else if constexpr (F::arity == 2) d[i] = F::template of<D>(a[i], b[i]);
    else d[i] = F::template of<D>(a[i], b[i], c[i]);
  }
}

template <class F, class D, class A>
void plain_loop(void* d, const void* a, const void* b, const void* c, std::int64_t n) {
  walk<F>(static_cast<D*>(d), static_cast<const A*>(a), static_cast<const A*>(b), static_cast<const A*>(c), n);
}
template <class F, class D, class A>
GRADUS_WIDE_VECTORS_AND_FMA void wide_loop(void* d, const void* a, const void* b, const void* c, std::int64_t n) {
  walk<F>(static_cast<D*>(d), static_cast<const A*>(a), static_cast<const A*>(b), static_cast<const A*>(c), n);
}

template <class F, class D, class A> Loop choose() {
  static const bool wide = has_wide_vectors();
  return wide ? wide_loop<F, D, A> : plain_loop<F, D, A>;
}

template <class T> constexpr bool is_float = std::is_floating_point_v<T>;
/// Wrap-around arithmetic of T happens in this type.
template <class T> using Wrapping = std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>;

struct Copy {
  static constexpr int arity = 1;
  template <class D, class A> [[gnu::always_inline]] static D of(A a) { return a; }
};
struct Add {
  static constexpr int arity = 2;
  template <class D> [[gnu::always_inline]] static D of(D a, D b) {
    if constexpr (is_float<D>) return a + b;
    else return static_cast<D>(static_cast<Wrapping<D>>(a) + static_cast<Wrapping<D>>(b));
  }
};
struct Subtract {
  static constexpr int arity = 2;
  template <class D> [[gnu::always_inline]] static D of(D a, D b) {
    if constexpr (is_float<D>) return a - b;
    else return static_cast<D>(static_cast<Wrapping<D>>(a) - static_cast<Wrapping<D>>(b));
  }
};
struct Multiply {
  static constexpr int arity = 2;
  template <class D> [[gnu::always_inline]] static D of(D a, D b) {
    if constexpr (is_float<D>) return a * b;
    else return static_cast<D>(static_cast<Wrapping<D>>(a) * static_cast<Wrapping<D>>(b));
  }
};
struct Divide {
  static constexpr int arity = 2;
  template <class D> [[gnu::always_inline]] static D of(D a, D b) {
    if constexpr (is_float<D>) return a / b;
    else if (b == 0) return 0;
    else if (std::is_signed_v<D> && b == static_cast<D>(-1)) return Subtract::of<D>(0, a);
    else return static_cast<D>(a / b);
  }
};
struct Negate {
  static constexpr int arity = 1;
  template <class D> [[gnu::always_inline]] static D of(D a) {
    if constexpr (is_float<D>) return -a;
    else return Subtract::of<D>(0, a);
  }
};
struct Absolute {
  static constexpr int arity = 1;
  template <class D> [[gnu::always_inline]] static D of(D a) {
    if constexpr (is_float<D>) return std::fabs(a);
    else if constexpr (std::is_unsigned_v<D>) return a;
    else return a < 0 ? Subtract::of<D>(0, a) : a;
  }
};
struct SquareRoot {
  static constexpr int arity = 1;
  template <class D> [[gnu::always_inline]] static D of(D a) { return std::sqrt(a); }
};
struct RoundEven {
  static constexpr int arity = 1;
  template <class D> [[gnu::always_inline]] static D of(D a) { return std::nearbyint(a); }
};
struct Floor {
  static constexpr int arity = 1;
  template <class D> [[gnu::always_inline]] static D of(D a) { return std::floor(a); }
};
struct Ceil {
  static constexpr int arity = 1;
  template <class D> [[gnu::always_inline]] static D of(D a) { return std::ceil(a); }
};
struct Truncate {
  static constexpr int arity = 1;
  template <class D> [[gnu::always_inline]] static D of(D a) { return std::trunc(a); }
};
struct Fma {
  static constexpr int arity = 3;
  template <class D> [[gnu::always_inline]] static D of(D a, D b, D c) { return std::fma(a, b, c); }
};
struct Minimum {
  static constexpr int arity = 2;
  template <class D> [[gnu::always_inline]] static D of(D a, D b) { return a < b ? a : b; }
};
struct Maximum {
  static constexpr int arity = 2;
  template <class D> [[gnu::always_inline]] static D of(D a, D b) { return a > b ? a : b; }
};
struct Less {
  static constexpr int arity = 2;
  template <class D, class A> [[gnu::always_inline]] static D of(A a, A b) { return a < b; }
};
struct LessEqual {
  static constexpr int arity = 2;
  template <class D, class A> [[gnu::always_inline]] static D of(A a, A b) { return a <= b; }
};
struct Equal {
  static constexpr int arity = 2;
  template <class D, class A> [[gnu::always_inline]] static D of(A a, A b) { return a == b; }
};
struct BitAnd {
  static constexpr int arity = 2;
  template <class D> [[gnu::always_inline]] static D of(D a, D b) { return static_cast<D>(a & b); }
};
struct BitOr {
  static constexpr int arity = 2;
  template <class D> [[gnu::always_inline]] static D of(D a, D b) { return static_cast<D>(a | b); }
};
struct BitXor {
  static constexpr int arity = 2;
  template <class D> [[gnu::always_inline]] static D of(D a, D b) { return static_cast<D>(a ^ b); }
};
struct ShiftLeft {
  static constexpr int arity = 2;
  template <class D> [[gnu::always_inline]] static D of(D a, D b) {
    return static_cast<D>(static_cast<Wrapping<D>>(a) << b);
  }
};
struct ShiftRight {
  static constexpr int arity = 2;
  template <class D> [[gnu::always_inline]] static D of(D a, D b) { return static_cast<D>(a >> b); }
};
struct ShiftRightLogical {
  static constexpr int arity = 2;
  template <class D> [[gnu::always_inline]] static D of(D a, D b) {
    return static_cast<D>(static_cast<std::make_unsigned_t<D>>(a) >> b);
  }
};

struct Convert {
  static constexpr int arity = 1;
  template <class D, class A> [[gnu::always_inline]] static D of(A a) {
    if constexpr (NarrowElement<A>) {
      return of<D>(static_cast<float>(a));
    } else if constexpr (is_float<A> && !FloatingElement<D>) {
      constexpr A low = static_cast<A>(std::numeric_limits<D>::min());
      constexpr A high = static_cast<A>(std::numeric_limits<D>::max());  // of wide integers: one more
      if (a != a) return 0;
      return a <= low ? std::numeric_limits<D>::min() : a >= high ? std::numeric_limits<D>::max() : static_cast<D>(a);
    } else {
      return static_cast<D>(a);
    }
  }
};
struct ConvertToBoolean {
  static constexpr int arity = 1;
  template <class D, class A> [[gnu::always_inline]] static D of(A a) { return a != A(0); }
};

/// A boolean in the first operand, so no Loop of one operand type.
template <class D>
[[gnu::always_inline]] inline void walk_select(D* d, const std::uint8_t* which, const D* a, const D* b,
                                               std::int64_t n) {
#pragma GCC ivdep
  for (std::int64_t i = 0; i < n; ++i) d[i] = which[i] ? a[i] : b[i];
}
template <class D> void plain_select(void* d, const void* which, const void* a, const void* b, std::int64_t n) {
  walk_select(static_cast<D*>(d), static_cast<const std::uint8_t*>(which), static_cast<const D*>(a),
              static_cast<const D*>(b), n);
}
template <class D>
GRADUS_WIDE_VECTORS void wide_select(void* d, const void* which, const void* a, const void* b, std::int64_t n) {
  walk_select(static_cast<D*>(d), static_cast<const std::uint8_t*>(which), static_cast<const D*>(a),
              static_cast<const D*>(b), n);
}

/// Calls visit with the type that holds `t` in memory: booleans are bytes 0 and 1.
template <class Visit> Loop with_storage(DType t, Visit visit) {
  return with_type(t, [&]<class T>(T) -> Loop {
    if constexpr (std::is_same_v<T, bool>) return visit(std::uint8_t{});
    else return visit(T{});
  });
}
/// The same for types that instructions compute with.
template <class Visit> Loop with_computing(DType t, Visit visit) {
  return with_storage(t, [&]<class T>(T) -> Loop {
    if constexpr (NarrowElement<T>) throw InternalError(text("internal fault: an instruction computes with ", t));
    else return visit(T{});
  });
}

template <class F> Loop of_numbers(DType t) {
  return with_computing(t, []<class T>(T) { return choose<F, T, T>(); });
}
template <class F> Loop of_comparison(DType t) {
  return with_computing(t, []<class T>(T) { return choose<F, std::uint8_t, T>(); });
}
template <class F> Loop of_floats(DType t) {
  internal_check(t == f64 || t == f32, "an instruction for floats on ", t);
  return t == f64 ? choose<F, double, double>() : choose<F, float, float>();
}
template <class F> Loop of_integers(DType t) {
  return with_computing(t, [&]<class T>(T) -> Loop {
    if constexpr (is_float<T>) throw InternalError(text("internal fault: an instruction for integers on ", t));
    else return choose<F, T, T>();
  });
}
Loop conversion(DType from, DType to) {
  return with_storage(from, [&]<class A>(A) -> Loop {
    if (to == boolean) return choose<ConvertToBoolean, std::uint8_t, A>();
    return with_storage(to, []<class D>(D) { return choose<Convert, D, A>(); });
  });
}
Loop selection(DType t) {
  const bool wide = has_wide_vectors();
  return with_storage(t, [wide]<class T>(T) -> Loop { return wide ? wide_select<T> : plain_select<T>; });
}

}  // namespace

Loop loop_of(scalar::Opcode op, DType from, DType to) {
  using enum scalar::Opcode;
  switch (op) {
    case add: return of_numbers<Add>(to);
    case subtract: return of_numbers<Subtract>(to);
    case multiply: return of_numbers<Multiply>(to);
    case divide: return of_numbers<Divide>(to);
    case negate: return of_numbers<Negate>(to);
    case absolute: return of_numbers<Absolute>(to);
    case square_root: return of_floats<SquareRoot>(to);
    case round_even: return of_floats<RoundEven>(to);
    case floor: return of_floats<Floor>(to);
    case ceil: return of_floats<Ceil>(to);
    case truncate: return of_floats<Truncate>(to);
    case fma: return of_floats<Fma>(to);
    case minimum: return of_numbers<Minimum>(to);
    case maximum: return of_numbers<Maximum>(to);
    case less: return of_comparison<Less>(from);
    case less_equal: return of_comparison<LessEqual>(from);
    case equal: return of_comparison<Equal>(from);
    case bit_and: return of_integers<BitAnd>(to);
    case bit_or: return of_integers<BitOr>(to);
    case bit_xor: return of_integers<BitXor>(to);
    case shift_left: return of_integers<ShiftLeft>(to);
    case shift_right: return of_integers<ShiftRight>(to);
    case shift_right_logical: return of_integers<ShiftRightLogical>(to);
    case select: return selection(to);
    case convert: return conversion(from, to);
    case bitcast: return copy_loop(to);
    case input:
    case constant:
    case extent: break;
  }
  throw InternalError("internal fault: a scalar instruction without a loop");
}

Loop copy_loop(DType t) {
  switch (size_of(t)) {
    case 8: return choose<Copy, std::uint64_t, std::uint64_t>();
    case 4: return choose<Copy, std::uint32_t, std::uint32_t>();
    case 2: return choose<Copy, std::uint16_t, std::uint16_t>();
    default: return choose<Copy, std::uint8_t, std::uint8_t>();
  }
}

}  // namespace gradus::scalar
