/// Reflection: the fields of an aggregate, by value and by name, without macros (C++20, up to 32 fields; a C array is
/// one). Hashing, printing and parsing of op attributes follow from it.
#pragma once
#include <array>
#include <concepts>
#include <cstdint>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

namespace gradus::reflect {

/// Most fields of an aggregate.
inline constexpr int max_fields = 32;
/// Most initializers within braces, with elements of C arrays counted one by one.
inline constexpr int max_initializers = 200;
/// Most elements of a C array whose elements have no default.
inline constexpr int max_elements = 64;

namespace detail {
// Never called. They have bodies, since clang asks for them where T has no linkage.
struct Anything {
  template <class T> operator T() const { __builtin_unreachable(); }
};
template <class Derived> struct BaseOf {
  template <class T>
    requires(std::is_base_of_v<T, Derived> && !std::same_as<T, Derived>)
  operator T() const {
    __builtin_unreachable();
  }
};

template <class T, int n>
constexpr bool takes = []<std::size_t... i>(std::index_sequence<i...>) {
  return requires { T{(static_cast<void>(i), Anything{})...}; };
}(std::make_index_sequence<static_cast<std::size_t>(n)>());

/// An array of elements without a default takes all of its elements or none. Returns the next number after n that T
/// takes; n: none.
template <class T, int n, int behind = 2> constexpr int past_array() {
  if constexpr (behind > max_elements || behind > static_cast<int>(sizeof(T))) return n;
  else if constexpr (takes<T, n + behind>) return n + behind;
  else return past_array<T, n, behind + 1>();
}
template <class T, int n = 0> constexpr int count_up() {
  if constexpr (n > max_initializers) {
    return n;
  } else if constexpr (takes<T, n + 1>) {
    return count_up<T, n + 1>();
  } else {
    constexpr int next = past_array<T, n>();
    if constexpr (next == n) return n;
    else return count_up<T, next>();
  }
}

/// For types with fields that have no default: the number that may be given is at least the number that must be.
template <class T, int n> constexpr int count_down() {
  if constexpr (n == 0 || takes<T, n>) return n;
  else return count_down<T, n - 1>();
}

/// Number of initializers within the braces of T: one per field, for a C array one per element.
template <class T> constexpr int count() {
  if constexpr (std::is_empty_v<T>) return 0;
  else if constexpr (takes<T, 0>) return count_up<T>();
  else return count_down<T, sizeof(T) < max_fields + max_elements ? int{sizeof(T)} : max_fields + max_elements>();
}

/// True if T takes `before` initializers, then `within` in braces of their own, then `after` more.
template <class T, int before, int within, int after> constexpr bool takes_nested() {
  return []<std::size_t... i, std::size_t... k, std::size_t... j>(std::index_sequence<i...>, std::index_sequence<k...>,
                                                                  std::index_sequence<j...>) {
    return requires {
      T{(static_cast<void>(i), Anything{})...,
        {(static_cast<void>(k), Anything{})...},
        (static_cast<void>(j), Anything{})...};
    };
  }(std::make_index_sequence<static_cast<std::size_t>(before)>(),
         std::make_index_sequence<static_cast<std::size_t>(within)>(),
         std::make_index_sequence<static_cast<std::size_t>(after)>());
}

/// Number of initializers, of `all`, for the field that begins with number `i`. After an array of k in braces, as many
/// may follow as after k without; after any other field in braces, as after one.
template <class T, int all, int i, int k = 1> constexpr int width() {
  if constexpr (k == 1) {
    if constexpr (takes_nested<T, i, 0, all - i - 1>() || i + 1 == all) return 1;
    else return width<T, all, i, 2>();
  } else if constexpr (i + k > all) {
    return 1;
  } else if constexpr (takes_nested<T, i, k, all - i - k>() && !takes_nested<T, i, k, all - i - k + 1>()) {
    return k;
  } else {
    return width<T, all, i, k + 1>();
  }
}
template <class T, int all, int i = 0> constexpr int count_groups() {
  if constexpr (i >= all) return 0;
  else return 1 + count_groups<T, all, i + width<T, all, i>()>();
}
template <class T> constexpr int count_of_fields() {
  if constexpr (count<T>() > max_initializers) return count<T>();
  else return count_groups<T, count<T>()>();
}

/// The first element of an aggregate with bases is one of them.
template <class T, int n> constexpr bool starts_with_base() {
  return []<std::size_t... i>(std::index_sequence<i...>) {
    return requires { T{BaseOf<T>{}, (static_cast<void>(i), Anything{})...}; };
  }(std::make_index_sequence<static_cast<std::size_t>(n - 1)>());
}
template <class T>
constexpr bool has_base = [] {
  if constexpr (std::is_empty_v<T> || count<T>() == 0) return false;
  else return starts_with_base<T, count<T>()>();
}();

/// Never defined: only the addresses of its parts are used, during compilation.
template <class T> struct Holder {
  T value;
};
#ifdef __clang__
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wundefined-internal"  // of types in unnamed namespaces
#endif
template <class T> extern const Holder<T> specimen;
#ifdef __clang__
#pragma clang diagnostic pop
#endif
}  // namespace detail

/// The number of fields of T.
template <class T> constexpr int field_count = detail::count_of_fields<T>();

namespace detail {
/// Said once for a type, const or not.
template <class T> consteval int few_fields() {
  static_assert(field_count<T> <= max_fields,
                "an aggregate of more than 32 fields: group some of them in a struct of their own");
  return field_count<T>;
}
}  // namespace detail

/// References to the fields of `object`, as a tuple.
template <class T> constexpr auto tie(T& object) {
  constexpr int fields = detail::few_fields<std::remove_const_t<T>>();
  if constexpr (fields == 0 || fields > max_fields) {  // past the assertion, so that it is the only error
    return std::tie();
  } else if constexpr (fields == 1) {
    auto& [a] = object;
    return std::tie(a);
  } else if constexpr (fields == 2) {
    auto& [a, b] = object;
    return std::tie(a, b);
  } else if constexpr (fields == 3) {
    auto& [a, b, c] = object;
    return std::tie(a, b, c);
  } else if constexpr (fields == 4) {
    auto& [a, b, c, d] = object;
    return std::tie(a, b, c, d);
  } else if constexpr (fields == 5) {
    auto& [a, b, c, d, e] = object;
    return std::tie(a, b, c, d, e);
  } else if constexpr (fields == 6) {
    auto& [a, b, c, d, e, f] = object;
    return std::tie(a, b, c, d, e, f);
  } else if constexpr (fields == 7) {
    auto& [a, b, c, d, e, f, g] = object;
    return std::tie(a, b, c, d, e, f, g);
  } else if constexpr (fields == 8) {
    auto& [a, b, c, d, e, f, g, h] = object;
    return std::tie(a, b, c, d, e, f, g, h);
  } else if constexpr (fields == 9) {
    auto& [a, b, c, d, e, f, g, h, i] = object;
    return std::tie(a, b, c, d, e, f, g, h, i);
  } else if constexpr (fields == 10) {
    auto& [a, b, c, d, e, f, g, h, i, j] = object;
    return std::tie(a, b, c, d, e, f, g, h, i, j);
  } else if constexpr (fields == 11) {
    auto& [a, b, c, d, e, f, g, h, i, j, k] = object;
    return std::tie(a, b, c, d, e, f, g, h, i, j, k);
  } else if constexpr (fields == 12) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l] = object;
    return std::tie(a, b, c, d, e, f, g, h, i, j, k, l);
  } else if constexpr (fields == 13) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m] = object;
    return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m);
  } else if constexpr (fields == 14) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n] = object;
    return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m, n);
  } else if constexpr (fields == 15) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o] = object;
    return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o);
  } else if constexpr (fields == 16) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p] = object;
    return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p);
  } else if constexpr (fields == 17) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q] = object;
    return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q);
  } else if constexpr (fields == 18) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r] = object;
    return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r);
  } else if constexpr (fields == 19) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s] = object;
    return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s);
  } else if constexpr (fields == 20) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t] = object;
    return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t);
  } else if constexpr (fields == 21) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u] = object;
    return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u);
  } else if constexpr (fields == 22) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v] = object;
    return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v);
  } else if constexpr (fields == 23) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w] = object;
    return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w);
  } else if constexpr (fields == 24) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x] = object;
    return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x);
  } else if constexpr (fields == 25) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y] = object;
    return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y);
  } else if constexpr (fields == 26) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z] = object;
    return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z);
  } else if constexpr (fields == 27) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, aa] = object;
    return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, aa);
  } else if constexpr (fields == 28) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, aa, ab] = object;
    return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, aa, ab);
  } else if constexpr (fields == 29) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, aa, ab, ac] = object;
    return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, aa, ab, ac);
  } else if constexpr (fields == 30) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, aa, ab, ac, ad] = object;
    return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, aa, ab, ac, ad);
  } else if constexpr (fields == 31) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, aa, ab, ac, ad, ae] = object;
    return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, aa, ab, ac, ad, ae);
  } else if constexpr (fields == 32) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, aa, ab, ac, ad, ae, af] =
        object;
    return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, aa, ab, ac, ad, ae,
                    af);
  }
}

/// True if fields can be distinguished: T is an aggregate without bases and references, and without a large C array.
template <class T>
constexpr bool is_reflected = [] {
  if constexpr (!std::is_aggregate_v<T> || std::is_array_v<T> || std::is_union_v<T>) return false;
  else if constexpr (detail::count<T>() > max_initializers) return false;
  else if constexpr (detail::has_base<T>) return false;
  else return std::is_empty_v<T> || field_count<T> > 0;
}();

namespace detail {
/// Clang before 18 takes the address of a part as an argument of a template only within a struct.
template <class T> struct Place {
  const T* at;
};
#ifdef __clang__
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wundefined-var-template"  // it is never defined
#endif
template <class T, int index> constexpr auto field_place() {
  const auto& field = std::get<index>(tie(specimen<T>.value));
  return Place<std::remove_cvref_t<decltype(field)>>{&field};
}
#ifdef __clang__
#pragma clang diagnostic pop
#endif

/// The compiler spells the field's address within the function's own name, at whose end the field is: GCC "...
/// T::field)}]", or with "; ..." behind it, Clang "... value.field}]".
template <auto place> constexpr std::string_view field_name() {
  std::string_view full = __PRETTY_FUNCTION__;
  full = full.substr(0, full.find(';'));
  full = full.substr(0, full.find_last_not_of(")}]") + 1);
  return full.substr(full.find_last_of(":.") + 1);
}
}  // namespace detail

/// The name of field `index`.
template <class T, int index>
constexpr std::string_view name_of_field = detail::field_name<detail::field_place<T, index>()>();

/// Calls visit(name, field) for each field.
template <class T, class Visit> constexpr void for_each_field(T& object, Visit visit) {
  using Plain = std::remove_const_t<T>;
  [&]<std::size_t... i>(std::index_sequence<i...>) {
    (visit(name_of_field<Plain, static_cast<int>(i)>, std::get<i>(tie(object))), ...);
  }(std::make_index_sequence<static_cast<std::size_t>(field_count<Plain>)>());
}

}  // namespace gradus::reflect
