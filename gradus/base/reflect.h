/// The fields of an aggregate, by value and by name, without macros (C++20, up to 24 fields, no C arrays).
/// Hashing, printing and parsing of op attributes follow from it.
#pragma once
#include <array>
#include <cstdint>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

namespace gradus::reflect {

inline constexpr int max_fields = 24;

namespace detail {
struct Anything {
  template <class T> operator T() const;
};

template <class T, class... Args> constexpr int count_fields() {
  if constexpr (requires { T{Args{}..., Anything{}}; }) return count_fields<T, Args..., Anything>();
  else return sizeof...(Args);
}

/// For types with fields that have no default: how many may be given is how many must be, or more.
template <class T, int n> constexpr int count_down() {
  constexpr bool takes = []<std::size_t... i>(std::index_sequence<i...>) {
    return requires { T{(static_cast<void>(i), Anything{})...}; };
  }(std::make_index_sequence<static_cast<std::size_t>(n)>());
  if constexpr (takes || n == 0) return n;
  else return count_down<T, n - 1>();
}

template <class T> constexpr int count() {
  if constexpr (std::is_empty_v<T>) return 0;
  else if constexpr (requires { T{}; }) return count_fields<T>();
  else return count_down<T, max_fields + 1>();
}

/// Never defined: only the addresses of its parts are looked at, during compilation.
template <class T> struct Holder {
  T value;
};
template <class T> extern const Holder<T> specimen;
}  // namespace detail

template <class T> constexpr int field_count = detail::count<T>();

/// References to the fields of `object`, as a tuple.
template <class T> constexpr auto tie(T& object) {
  constexpr int n = field_count<std::remove_const_t<T>>;
  static_assert(n <= max_fields, "an aggregate with this many fields cannot be reflected: group them in a struct");
  if constexpr (n == 0) {
    return std::tie();
  } else if constexpr (n == 1) {
    auto& [a] = object;
    return std::tie(a);
  } else if constexpr (n == 2) {
    auto& [a, b] = object;
    return std::tie(a, b);
  } else if constexpr (n == 3) {
    auto& [a, b, c] = object;
    return std::tie(a, b, c);
  } else if constexpr (n == 4) {
    auto& [a, b, c, d] = object;
    return std::tie(a, b, c, d);
  } else if constexpr (n == 5) {
    auto& [a, b, c, d, e] = object;
    return std::tie(a, b, c, d, e);
  } else if constexpr (n == 6) {
    auto& [a, b, c, d, e, f] = object;
    return std::tie(a, b, c, d, e, f);
  } else if constexpr (n == 7) {
    auto& [a, b, c, d, e, f, g] = object;
    return std::tie(a, b, c, d, e, f, g);
  } else if constexpr (n == 8) {
    auto& [a, b, c, d, e, f, g, h] = object;
    return std::tie(a, b, c, d, e, f, g, h);
  } else if constexpr (n == 9) {
    auto& [a, b, c, d, e, f, g, h, i] = object;
    return std::tie(a, b, c, d, e, f, g, h, i);
  } else if constexpr (n == 10) {
    auto& [a, b, c, d, e, f, g, h, i, j] = object;
    return std::tie(a, b, c, d, e, f, g, h, i, j);
  } else if constexpr (n == 11) {
    auto& [a, b, c, d, e, f, g, h, i, j, k] = object;
    return std::tie(a, b, c, d, e, f, g, h, i, j, k);
  } else if constexpr (n == 12) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l] = object;
    return std::tie(a, b, c, d, e, f, g, h, i, j, k, l);
  } else if constexpr (n == 13) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m] = object;
    return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m);
  } else if constexpr (n == 14) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n] = object;
    return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m, n);
  } else if constexpr (n == 15) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o] = object;
    return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o);
  } else if constexpr (n == 16) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p] = object;
    return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p);
  } else if constexpr (n == 17) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q] = object;
    return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q);
  } else if constexpr (n == 18) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r] = object;
    return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r);
  } else if constexpr (n == 19) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s] = object;
    return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s);
  } else if constexpr (n == 20) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t] = object;
    return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t);
  } else if constexpr (n == 21) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u] = object;
    return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u);
  } else if constexpr (n == 22) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v] = object;
    return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v);
  } else if constexpr (n == 23) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w] = object;
    return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w);
  } else if constexpr (n == 24) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x] = object;
    return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x);
  }
}

namespace detail {
template <class T, int index> constexpr auto field_address() { return &std::get<index>(tie(specimen<T>.value)); }

/// The compiler spells the field's address inside the function's own name, where it ends with the field:
/// GCC "... T::field)]", or with "; ..." behind it, Clang "... value.field]".
template <auto address> constexpr std::string_view field_name() {
  std::string_view full = __PRETTY_FUNCTION__;
  full = full.substr(0, full.find(';'));
  full = full.substr(0, full.find_last_not_of(")]") + 1);
  return full.substr(full.find_last_of(":.") + 1);
}
}  // namespace detail

/// Calls visit(name, field) for each field.
template <class T, class Visit> constexpr void for_each_field(T& object, Visit visit) {
  using Plain = std::remove_const_t<T>;
  [&]<std::size_t... i>(std::index_sequence<i...>) {
    (visit(detail::field_name<detail::field_address<Plain, static_cast<int>(i)>()>(), std::get<i>(tie(object))), ...);
  }(std::make_index_sequence<static_cast<std::size_t>(field_count<Plain>)>());
}

}  // namespace gradus::reflect
