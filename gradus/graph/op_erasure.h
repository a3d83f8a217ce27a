/// Type erasure of ops: makes an OpType and an AnyOp of an op struct. op.h includes it; authors of ops need not read
/// it.
#pragma once
#include <charconv>
#include "gradus/graph/op.h"

namespace gradus {

namespace detail::inline rooms {

/// The records of all ops with attributes, by hash. Unused ones are dropped when they pile up.
struct OpTable {
  using Same = bool (*)(const void* a, const void* b);
  using Clone = const void* (*)(const void*);
  static AnyOp find(const OpType& type, const void* op, std::uint64_t hash, Same same, Clone clone);
  static AnyOp wrap(const OpRecord& record) { return AnyOp(&record); }
  static void enroll(const OpType& type);
  static std::size_t size();  // records alive, for tests
};

}  // namespace detail::inline rooms

namespace detail {

template <class V, class T> V emit_with(const T& op, std::span<const V> x) {
  if constexpr (Unary<T>) return op.emit(x[0]);
  else if constexpr (Binary<T>) return op.emit(x[0], x[1]);
  else if constexpr (Ternary<T>) return op.emit(x[0], x[1], x[2]);
  else return op.emit(x[0], x[1], x[2], x[3]);
}

template <class T> DType result_dtype(const T& op, Specs in) {
  if constexpr (requires { op.result(in); }) return op.result(in);
  else if constexpr (requires { T::result; }) return T::result;
  else return in.back().dtype;
}

Spec infer_elementwise(std::string_view name, Takes accepted, DType result, Specs in);
Spec infer_reduction(std::string_view name, Takes accepted, int axis, Specs in);

void print_field(std::ostream& out, bool value);
void print_field(std::ostream& out, std::int64_t value);  // a dimension may be symbolic
void print_field(std::ostream& out, int value);
void print_field(std::ostream& out, double value);
void print_field(std::ostream& out, DType value);
void print_field(std::ostream& out, const Shape& value);
void print_field(std::ostream& out, const scalar::Literal& value);
void print_field(std::ostream& out, const Region& value);
void print_field(std::ostream& out, Placement value);

void parse_field(std::string_view text, bool& value);
void parse_field(std::string_view text, std::int64_t& value);
void parse_field(std::string_view text, int& value);
void parse_field(std::string_view text, double& value);
void parse_field(std::string_view text, DType& value);
void parse_field(std::string_view text, Shape& value);
void parse_field(std::string_view text, scalar::Literal& value);
void parse_field(std::string_view text, Region& value);
void parse_field(std::string_view text, Placement& value);

std::uint64_t hash_field(double value);
std::uint64_t hash_field(const scalar::Literal& value);
std::uint64_t hash_field(const Region& value);
inline std::uint64_t hash_field(const Shape& value) { return hash_of(value); }
inline std::uint64_t hash_field(std::int64_t value) { return static_cast<std::uint64_t>(value); }
inline std::uint64_t hash_field(int value) { return static_cast<std::uint64_t>(value); }
inline std::uint64_t hash_field(bool value) { return value; }
inline std::uint64_t hash_field(Placement value) { return value.code(); }
inline std::uint64_t hash_field(DType value) { return static_cast<std::uint64_t>(value); }

template <class T> std::uint64_t hash_attributes(const T& op) {
  static const std::uint64_t seed = hash_of(std::string_view(T::name));
  std::uint64_t hash = seed;
  reflect::for_each_field(op, [&](std::string_view, const auto& field) { hash = mix(hash, hash_field(field)); });
  return hash;
}

/// Numbers by their bits, as they are hashed: NaN is the same as itself, and -0 is not 0.
template <class Field> bool same_field(const Field& a, const Field& b) {
  if constexpr (std::is_floating_point_v<Field>) return hash_field(a) == hash_field(b);
  else return a == b;
}

template <class T> bool same_attributes(const T& a, const T& b) {
  bool same = true;
  [&]<std::size_t... i>(std::index_sequence<i...>) {
    const auto fields_a = reflect::tie(a), fields_b = reflect::tie(b);
    ((same = same && same_field(std::get<i>(fields_a), std::get<i>(fields_b))), ...);
  }(std::make_index_sequence<static_cast<std::size_t>(reflect::field_count<T>)>());
  return same;
}

template <class T> void print_attributes(const void* op, std::ostream& out) {
  const char* separator = "{";
  reflect::for_each_field(*static_cast<const T*>(op), [&](std::string_view name, const auto& field) {
    out << separator << name << '=';
    print_field(out, field);
    separator = "; ";
  });
  out << '}';
}

/// Where `wanted` first stands in `text` outside of {}; its size if nowhere. Regions are printed within {}.
std::size_t find_outside_braces(std::string_view text, char wanted);
/// The text of attribute `name` within "a=1; b=true". InvalidArgument if it is not there.
std::string_view attribute_text(std::string_view op, std::string_view attributes, std::string_view name);
/// InvalidArgument if there is another number of attributes than `count`.
void check_attribute_count(std::string_view op, std::string_view attributes, int count);

template <class T> AnyOp parse_attributes(std::string_view attributes) {
  T op{};
  check_attribute_count(T::name, attributes, reflect::field_count<T>);
  reflect::for_each_field(
      op, [&](std::string_view name, auto& field) { parse_field(attribute_text(T::name, attributes, name), field); });
  return AnyOp::of(op);
}

template <class T> constexpr int arity_of_formula() {
  return Unary<T> ? 1 : Binary<T> ? 2 : Ternary<T> ? 3 : Quaternary<T> ? 4 : -1;
}
template <class T> constexpr Takes accepted_by() {
  if constexpr (requires { T::takes; }) return T::takes;
  else return Takes::numbers;
}

/// The op behind a record's attributes, which an op without fields has none of.
template <class T> const T& attributes_as(const void* attributes) {
  if constexpr (reflect::field_count<T> == 0) {
    static const T empty{};
    return empty;
  } else {
    return *static_cast<const T*>(attributes);
  }
}

template <class T> void describe_inference(OpType& type) {
  [[maybe_unused]] static constexpr auto self = attributes_as<T>;
  if constexpr (requires(const T op, Specs in) { op.infer(in); }) {
    type.infer = [](const void* op, Specs in) { return self(op).infer(in); };
  } else if constexpr (Emits<T>) {
    type.infer = [](const void* op, Specs in) {
      return infer_elementwise(T::name, accepted_by<T>(), result_dtype(self(op), in), in);
    };
  } else if constexpr (Reduces<T>) {
    type.infer = [](const void* op, Specs in) { return infer_reduction(T::name, accepted_by<T>(), self(op).axis, in); };
  }
}

template <class T> constexpr bool has_regions() {
  bool found = false;
  if constexpr (!std::is_empty_v<T>)
    [&]<class... Fields>(std::type_identity<std::tuple<Fields...>>) {
      found = (std::is_same_v<std::remove_cvref_t<Fields>, Region> || ...);
    }(std::type_identity<decltype(reflect::tie(std::declval<const T&>()))>{});
  return found;
}

template <class T> std::vector<const Region*> regions_among(const void* op) {
  std::vector<const Region*> found;
  reflect::for_each_field(*static_cast<const T*>(op), [&](std::string_view, const auto& field) {
    if constexpr (std::is_same_v<std::remove_cvref_t<decltype(field)>, Region>) found.push_back(&field);
  });
  return found;
}

/// Regions, and results of which there are several.
template <class T> void describe_structure(OpType& type) {
  [[maybe_unused]] static constexpr auto self = attributes_as<T>;
  if constexpr (has_regions<T>()) type.regions = regions_among<T>;
  if constexpr (Inlines<T>) type.inlined = [](const void* op) -> const Region& { return self(op).inlined(); };
  if constexpr (Controls<T>) type.control = T::control;
  if constexpr (HasSiblings<T>) {
    type.outputs = [](const void* op) { return self(op).outputs(); };
    type.output = [](const void* op) { return self(op).output; };
    type.with_output = [](const void* op, int output) {
      T sibling = self(op);
      sibling.output = output;
      return AnyOp::of(sibling);
    };
  }
  if constexpr (HasSiblingVjp<T>)
    type.vjp_of_all = [](const void* op, In in, const Cotangents& dy) { return self(op).vjp(in, dy); };
}

template <class T> OpType describe() {
  OpType type{.name = T::name, .arity = arity_of_formula<T>(), .takes = accepted_by<T>()};
  [[maybe_unused]] static constexpr auto self = attributes_as<T>;
  describe_inference<T>(type);
  if constexpr (requires(const T op, In in, const Tensor& y) { op.vjp(in, y, y); })
    type.vjp = [](const void* op, In in, const Tensor& y, const Tensor& dy) { return self(op).vjp(in, y, dy); };
  if constexpr (requires(const T op, In in) { op.batch(in, std::uint32_t{}, std::int64_t{}); })
    type.batch = [](const void* op, In in, std::uint32_t mask, std::int64_t n) { return self(op).batch(in, mask, n); };
  if constexpr (Emits<T>) {
    type.emit = [](const void* op, std::span<const scalar::Value> x) -> scalar::Value {
      return emit_with(self(op), x);
    };
    type.emit_real = [](const void* op, std::span<const scalar::Real> x) -> scalar::Real {
      return emit_with(self(op), x);
    };
    type.result = [](const void* op, Specs in) { return result_dtype(self(op), in); };
  }
  if constexpr (Reduces<T>) {
    type.combine = [](const void* op, scalar::Value a, scalar::Value x) -> scalar::Value {
      return self(op).combine(a, x);
    };
    type.combine_real = [](const void* op, scalar::Real a, scalar::Real x) -> scalar::Real {
      return self(op).combine(a, x);
    };
    type.identity = [](DType t) { return T::identity(t); };
    type.axis = [](const void* op) { return self(op).axis; };
  }
  if constexpr (Indexes<T>) {
    type.emit_index = [](const void* op, scalar::Value i) -> scalar::Value { return self(op).emit_index(i); };
    type.emit_index_real = [](const void* op, scalar::Real i) -> scalar::Real { return self(op).emit_index(i); };
  }
  if constexpr (Views<T>)
    type.view = [](const void* op, const Shape& in, const Shape& out) { return self(op).view(in, out); };
  if constexpr (Calls<T>) type.library_kernel = T::library_kernel;
  if constexpr (requires(const T op, Specs in) { op.carries(in, 0, -1); })
    type.carries = [](const void* op, Specs in, int i, int axis) { return self(op).carries(in, i, axis); };
  if constexpr (requires { T::may_fail; }) type.may_fail = T::may_fail;
  if constexpr (requires { T::over_shards; }) type.over_shards = T::over_shards;
  if constexpr (Copies<T>) type.copies_to = [](const void* op) { return self(op).to; };
  describe_structure<T>(type);
  type.alias = Aliases<T>;
  type.composite = Expands<T>;
  if constexpr (reflect::field_count<T> > 0) type.print = print_attributes<T>;
  type.parse = parse_attributes<T>;
  type.destroy = [](const void* op) { delete static_cast<const T*>(op); };
  return type;
}

/// The type record of T, enrolled at program start by any code that applies T.
template <class T> struct Described {
  static const OpType& type() {
    static const OpType only = describe<T>();
    return only;
  }
  static const bool enrolled;
};
template <class T> const bool Described<T>::enrolled = (OpTable::enroll(type()), true);

}  // namespace detail

template <class T> detail::AnyOp detail::AnyOp::of(const T& op) {
  (void)detail::Described<T>::enrolled;
  const detail::OpType& type = detail::Described<T>::type();
  if constexpr (reflect::field_count<T> == 0) {
    static const detail::OpRecord only{&type, nullptr, detail::hash_attributes(op)};
    return detail::OpTable::wrap(only);
  } else {
    return detail::OpTable::find(
        type, &op, detail::hash_attributes(op),
        [](const void* a, const void* b) {
          return detail::same_attributes(*static_cast<const T*>(a), *static_cast<const T*>(b));
        },
        [](const void* a) -> const void* { return new T(*static_cast<const T*>(a)); });
  }
}

template <class T> const T* detail::AnyOp::as() const {
  static const T empty{};
  if (!record_ || record_->type != &detail::Described<T>::type()) return nullptr;
  return record_->attributes ? static_cast<const T*>(record_->attributes) : &empty;
}

}  // namespace gradus
