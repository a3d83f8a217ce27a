/// One definition per op. An op is an aggregate at namespace scope whose fields are its attributes, with its rules:
///
///   name                       in text form; TensorFlow's last path segment where there is one
///   takes                      the dtypes of its operands (Takes::numbers unless said)
///   infer(specs)               shape rule            (implied by emit and combine)
///   vjp(inputs, y, dy)         gradient rule         (not needed by composites; {} for "none")
///   batch(inputs, mask, n)     the op on n rows at once (implied by emit, combine, emit_index and expand): operand i
///   has
///                              a new leading dimension n if has_rows(mask, i); so has the result. At least one has it
///   and exactly one way of being computed:
///     emit(x, ...)             a scalar formula of one to four operands of one shape: fusable
///     combine(acc, x)          a reduction along `axis`, kept as size 1, with its identity(dtype): fusable
///     view(in, out)            how the output index walks through the input: read in place
///     emit_index(i)            a function of the flat row-major index (i64): read in place
///     alias()                  the same bytes under another shape: free
///     library_kernel           the name of a kernel of the backend
///     expand(inputs)           other ops: a composite, which is gone once applied
///     inlined()                the region (graph/region.h) that it stands for: replaced by it before compiling
///     control                  the name of a construct of the backend that runs regions: a branch or a loop
///
/// An op of several results is several nodes: siblings, of one op type and the same operands, that differ in their
/// field `int output` alone, one of `outputs()`. Its gradient rule is asked once for all of them:
/// vjp(inputs, Cotangents).
///
/// A library kernel may say where an axis of an operand goes, for those who ask whether examples mix: what stands apart
/// along axis `axis` of operand `i` stands apart along axis carries(specs, i, axis) of the result; 0 if it is mixed.
/// Without the rule everything is.
///
/// An op with a field `Placement to` copies its operand to that device; all others run where their operands are.
///
/// An op on shards of a batch (docs/architecture.md) says  static constexpr auto over_shards = OverShards::...;
///
/// A library kernel that data can make fail (an index out of range) says  static constexpr bool may_fail = true;
///
/// Axes in attributes count from the end, which makes most batching rules the identity.
///
/// AnyOp erases the type. Attributes are structure, never data: they are interned, so an AnyOp is one pointer and
/// equality is pointer equality.
#pragma once
#include <atomic>
#include <concepts>
#include <iterator>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include "gradus/base/reflect.h"
#include "gradus/graph/tensors.h"
#include "gradus/scalar/scalar.h"
#include "gradus/tensor/shape.h"

namespace gradus {

namespace detail::inline rooms {

class Region;

/// A view of the specs of operands: side by side, or each where it is. Like a span not to be kept, and passed in
/// registers.
class Specs {
 public:
  template <std::convertible_to<std::span<const Spec>> List> Specs(const List& specs) {
    const std::span<const Spec> all = specs;
    first_ = all.data();
    size_ = static_cast<std::uint32_t>(all.size());
  }
  explicit Specs(std::span<const Spec* const> specs)
      : first_(specs.data()), size_(static_cast<std::uint32_t>(specs.size())), apart_(true) {}

  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  const Spec& operator[](std::size_t i) const {
    return apart_ ? *static_cast<const Spec* const*>(first_)[i] : static_cast<const Spec*>(first_)[i];
  }
  const Spec& back() const { return (*this)[size_ - 1]; }

  class Iterator;
  Iterator begin() const;
  Iterator end() const;

 private:
  const void* first_;
  std::uint32_t size_;
  bool apart_ = false;
};

class Specs::Iterator {
 public:
  using value_type = Spec;
  using difference_type = std::ptrdiff_t;
  Iterator() = default;
  Iterator(const Specs& specs, std::size_t i) : specs_(&specs), i_(i) {}
  const Spec& operator*() const { return (*specs_)[i_]; }
  Iterator& operator++() { return ++i_, *this; }
  Iterator operator++(int) { return {*specs_, i_++}; }
  bool operator==(const Iterator& other) const { return i_ == other.i_; }

 private:
  const Specs* specs_ = nullptr;
  std::size_t i_ = 0;
};
inline Specs::Iterator Specs::begin() const { return {*this, 0}; }
inline Specs::Iterator Specs::end() const { return {*this, size_}; }
static_assert(std::forward_iterator<Specs::Iterator>);

/// Where a view reads: element (i0, i1, ...) of the output is element offset + i0*strides[0] + ... of the input, a
/// stride counting negative where `backwards` has its bit. Offset and strides are dimensions: symbolic or not negative.
struct View {
  std::int64_t offset = 0;
  Shape strides;                // one per dimension of the output
  std::uint32_t backwards = 0;  // bit i: dimension i is walked towards lower addresses
};

/// The cotangents that the gradient rule of an op with several results is given.
struct Cotangents {
  Tensors of;                // one per output of the op; empty where nothing depends on it
  std::vector<bool> wanted;  // one per operand: true if its gradient is of use
};

/// Dtypes that an op takes.
enum class Takes : std::uint8_t { floats = 1, integers = 2, booleans = 4, numbers = 3, discrete = 6, anything = 7 };
constexpr bool takes(Takes set, DType t) {
  const int bit = is_floating(t) ? 1 : is_integer(t) ? 2 : 4;
  return (static_cast<int>(set) & bit) != 0;
}

/// How an op stands to the shards of a batch that one program computes on. Most compute on each for itself.
enum class OverShards : std::uint8_t {
  each,     // its result differs from shard to shard if an operand does
  splits,   // its result differs from shard to shard
  reduces,  // its result is the sum over all shards
  gathers,  // its result is those of all shards, contiguous
};

/// True if operand i has the leading dimension of a batching rule. If an op has more than 32 operands, all have it.
constexpr bool has_rows(std::uint32_t mask, std::size_t i) { return i >= 32 || (mask >> i & 1); }

}  // namespace detail::inline rooms

namespace detail {

/// The rules that a struct of an op has.
template <class T>
concept Unary = requires(const T op, scalar::Value x) { op.emit(x); };
template <class T>
concept Binary = requires(const T op, scalar::Value x) { op.emit(x, x); };
template <class T>
concept Ternary = requires(const T op, scalar::Value x) { op.emit(x, x, x); };
template <class T>
concept Quaternary = requires(const T op, scalar::Value x) { op.emit(x, x, x, x); };
template <class T>
concept Emits = Unary<T> || Binary<T> || Ternary<T> || Quaternary<T>;
template <class T>
concept Reduces = requires(const T op, scalar::Value x) {
  op.combine(x, x);
  { T::identity(f32) } -> std::same_as<scalar::Literal>;
  { op.axis } -> std::convertible_to<int>;
};
template <class T>
concept Views = requires(const T op, Shape s) {
  { op.view(s, s) } -> std::same_as<View>;
};
template <class T>
concept Indexes = requires(const T op, scalar::Value i) { op.emit_index(i); };
template <class T>
concept Aliases = requires(const T op) { op.alias(); };
template <class T>
concept Calls = requires { std::string_view(T::library_kernel); };
template <class T>
concept Expands = requires(const T op, In in) {
  { op.expand(in) } -> std::same_as<Tensor>;
};
template <class T>
concept Inlines = requires(const T op) {
  { op.inlined() } -> std::same_as<const Region&>;
};
template <class T>
concept Controls = requires { std::string_view(T::control); };
template <class T>
concept HasSiblings = requires(T op) {
  { op.outputs() } -> std::same_as<int>;
  { op.output } -> std::same_as<int&>;
};
template <class T>
concept Copies = requires(const T op) {
  { op.to } -> std::convertible_to<Placement>;
};
template <class T>
concept HasName = requires { std::string_view(T::name); };
template <class T>
concept HasInfer = Emits<T> || Reduces<T> || Expands<T> || requires(const T op, Specs in) {
  { op.infer(in) } -> std::same_as<Spec>;
};
template <class T>
concept HasSiblingVjp = HasSiblings<T> && requires(const T op, In in, const Cotangents& dy) {
  { op.vjp(in, dy) } -> std::same_as<Tensors>;
};
template <class T>
concept HasVjp = Expands<T> || HasSiblingVjp<T> || requires(const T op, In in, const Tensor& y) {
  { op.vjp(in, y, y) } -> std::same_as<Tensors>;
};
template <class T>
concept HasBatch = Emits<T> || Reduces<T> || Indexes<T> || Expands<T> ||
                   requires(const T op, In in, std::uint32_t mask, std::int64_t n) {
                     { op.batch(in, mask, n) } -> std::same_as<Tensor>;
                   };
template <class T>
constexpr int ways_of_computing =
    Emits<T> + Reduces<T> + Views<T> + Indexes<T> + Aliases<T> + Calls<T> + Expands<T> + Inlines<T> + Controls<T>;
template <class T>
concept IsOp = HasName<T> && HasInfer<T> && HasVjp<T> && HasBatch<T> && ways_of_computing<T> == 1;

/// Says in one line what an op lacks.
template <class T> consteval bool is_complete_op() {
  static_assert(HasName<T>, "this op has no name: add  static constexpr auto name = \"...\"");
  static_assert(ways_of_computing<T> == 1,
                "an op is computed in exactly one way: emit, combine, view, emit_index, alias, library_kernel, expand, "
                "inlined or "
                "control");
  static_assert(HasInfer<T>, "this op has no shape rule: add  Spec infer(Specs in) const");
  static_assert(HasVjp<T>, "this op has no gradient: add  Tensors vjp(In in, const Tensor& y, const Tensor& dy) const");
  static_assert(HasBatch<T>,
                "this op has no batching rule: add  Tensor batch(In in, std::uint32_t mask, std::int64_t n) const");
  return IsOp<T>;
}

}  // namespace detail

namespace detail::inline rooms {

class AnyOp;

/// Everything true of one op type, generated from its struct. Absent rules are null.
struct OpType {
  std::string_view name;
  int arity = -1;  // of a formula; -1: infer says
  Takes takes = Takes::numbers;
  Spec (*infer)(const void*, Specs) = nullptr;
  Tensors (*vjp)(const void*, In, const Tensor& y, const Tensor& dy) = nullptr;
  Tensor (*batch)(const void*, In, std::uint32_t mask, std::int64_t n) = nullptr;  // null: implied
  scalar::Value (*emit)(const void*, std::span<const scalar::Value>) = nullptr;
  scalar::Real (*emit_real)(const void*, std::span<const scalar::Real>) = nullptr;
  DType (*result)(const void*, Specs) = nullptr;  // of a formula
  scalar::Value (*combine)(const void*, scalar::Value, scalar::Value) = nullptr;
  scalar::Real (*combine_real)(const void*, scalar::Real, scalar::Real) = nullptr;
  scalar::Literal (*identity)(DType) = nullptr;
  int (*axis)(const void*) = nullptr;
  scalar::Value (*emit_index)(const void*, scalar::Value) = nullptr;
  scalar::Real (*emit_index_real)(const void*, scalar::Real) = nullptr;
  View (*view)(const void*, const Shape& in, const Shape& out) = nullptr;
  bool alias = false;
  bool composite = false;
  const char* library_kernel = nullptr;
  int (*carries)(const void*, Specs, int operand, int axis) = nullptr;
  bool may_fail = false;                          // for reasons that depend on data; a region may too
  Placement (*copies_to)(const void*) = nullptr;  // of a copy between devices
  OverShards over_shards = OverShards::each;
  const Region& (*inlined)(const void*) = nullptr;
  const char* control = nullptr;
  std::vector<const Region*> (*regions)(const void*) = nullptr;
  // Only of an op with several results.
  int (*outputs)(const void*) = nullptr;
  int (*output)(const void*) = nullptr;
  AnyOp (*with_output)(const void*, int) = nullptr;
  Tensors (*vjp_of_all)(const void*, In, const Cotangents&) = nullptr;
  void (*print)(const void*, std::ostream&) = nullptr;
  AnyOp (*parse)(std::string_view attributes) = nullptr;
  void (*destroy)(const void*) = nullptr;
};

/// One distinct (type, attributes) value, counted; forgotten some time after its last use.
struct OpRecord {
  const OpType* type;
  const void* attributes;  // null: an op without attributes, which lives for ever
  std::uint64_t hash;
  mutable std::atomic<std::uint32_t> refs{0};
};

class AnyOp {
 public:
  AnyOp() = default;
  AnyOp(const AnyOp& other) : record_(other.record_) { retain(); }
  AnyOp(AnyOp&& other) noexcept : record_(std::exchange(other.record_, nullptr)) {}
  AnyOp& operator=(AnyOp other) noexcept {
    std::swap(record_, other.record_);
    return *this;
  }
  ~AnyOp() {
    if (record_ && record_->attributes) record_->refs.fetch_sub(1, std::memory_order_release);
  }
  template <class T> static AnyOp of(const T& op);

  explicit operator bool() const { return record_; }
  bool operator==(const AnyOp& other) const { return record_ == other.record_; }
  const OpType* operator->() const { return record_->type; }
  const void* attributes() const { return record_->attributes; }
  std::uint64_t hash() const { return record_->hash; }
  const OpRecord* record() const { return record_; }
  /// The op as its own type; null if it is another.
  template <class T> const T* as() const;

  // How it is computed. All are false of a leaf.
  bool is_elementwise() const { return record_ && record_->type->emit; }
  bool is_reduction() const { return record_ && record_->type->combine; }
  bool is_view() const { return record_ && record_->type->view; }
  bool is_index() const { return record_ && record_->type->emit_index; }
  bool is_alias() const { return record_ && record_->type->alias; }
  bool is_library_call() const { return record_ && record_->type->library_kernel; }
  bool is_control() const { return record_ && record_->type->control; }
  /// True if it copies from one device to another. copies_to() is the device to which.
  bool is_copy() const { return record_ && record_->type->copies_to; }
  Placement copies_to() const { return record_->type->copies_to(record_->attributes); }
  /// True if it takes values of all shards.
  bool joins_shards() const { return record_ && record_->type->over_shards > OverShards::splits; }
  /// True if its result differs from shard to shard, if any of its operands does.
  bool varies(bool operands_vary) const {
    if (!record_ || record_->type->over_shards == OverShards::each) [[likely]]
      return operands_vary;
    return record_->type->over_shards == OverShards::splits;
  }
  bool has_siblings() const { return record_ && record_->type->with_output; }
  bool may_fail() const;
  /// The regions among its attributes.
  std::vector<const Region*> regions() const;
  /// For an op with several results: its sibling with another `output`.
  AnyOp sibling(int output) const { return record_->type->with_output(record_->attributes, output); }
  int output() const { return record_->type->output(record_->attributes); }
  /// For a reduction: its axis, counted from the end.
  int axis() const { return record_->type->axis(record_->attributes); }

  /// Shape and dtype of the result. Throws what the user did wrong.
  Spec infer(Specs in) const;
  /// Records the formula of an elementwise op on inputs of these dtypes: narrow floats are widened first, and the
  /// result is rounded once.
  scalar::Code formula(std::span<const DType> inputs) const;
  /// Records combine(acc, x) of a reduction of dtype t: inputs 0 and 1, of type computed_in(t).
  scalar::Code combination(DType t) const;
  /// Records the index formula: input 0 is the i64 index.
  scalar::Code index_formula() const;

  friend std::ostream& operator<<(std::ostream& out, const AnyOp& op);  // name{a=1; b=true}

 private:
  friend struct OpTable;
  explicit AnyOp(const OpRecord* record) : record_(record) { retain(); }
  void retain() const {
    if (record_ && record_->attributes) record_->refs.fetch_add(1, std::memory_order_relaxed);
  }
  const OpRecord* record_ = nullptr;
};

/// Ops by name, composites included, for the parser and the tests. An op enters when code that applies it is linked;
/// there is no list to keep.
const std::map<std::string_view, const OpType*>& registered_ops();
AnyOp parse_op(std::string_view name, std::string_view attributes);

}  // namespace detail::inline rooms

}  // namespace gradus

#include "gradus/graph/op_erasure.h"
