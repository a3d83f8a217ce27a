/// Tensor: an immutable handle on a node of the computation graph. Applying an op makes a node. The node is computed
/// when its value is observed. While a function is traced, its arguments are symbols, and so is everything computed
/// from them.
#pragma once
#include <memory>
#include <optional>
#include <span>
#include <vector>
#include "gradus/graph/node.h"
#include "gradus/graph/subscript.h"
#include "gradus/tensor/device.h"

namespace gradus {

/// A weak number: takes the dtype of the tensor beside it (x * 2, 1 / x). A floating number beside a tensor of integers
/// or booleans is an InvalidArgument, also a whole one: i32 / 2.0 would divide integers. Write 2, or cast the tensor.
class Scalar {
 public:
  template <Element T> Scalar(T value) : literal_(value) {}

  // For the rooms of the library.
  const scalar::Literal& literal() const { return literal_; }

 private:
  scalar::Literal literal_;
};

/// A tensor. Copies are handles on the same immutable value.
class Tensor {
 public:
  /// Empty; using it is an Error.
  Tensor() = default;
  explicit Tensor(detail::Ref<detail::Node> node) : node_(std::move(node)) {}

  /// Its extents. While a function is traced, an extent may be a symbol, which is a negative number.
  const Shape& shape() const { return spec().shape; }
  /// The type of its elements.
  DType dtype() const { return spec().dtype; }
  /// The extent along `axis`; negative axes count from the end, OutOfRange past them. Unlike the extents in shape(), a
  /// symbolic one can be used in arithmetic and as a bound of a slice: x(slice(0, x.size(0) - 1)).
  Extent size(int axis) const { return Extent(shape()[axis]); }
  /// The device that holds it, or will compute it.
  Device device() const;
  /// This tensor on another device: a copy, through which gradients flow, or the tensor itself if it is on it already.
  /// The result stays on that device until it is copied again, and so does everything computed with it.
  Tensor to(const Device& device) const;
  Tensor to(const char*) const = delete;  // devices are objects: x.to(gpu(0))
  /// The bytes of its elements.
  std::size_t bytes() const;
  /// The value of a single element, as a double; InvalidArgument for another number of elements.
  double item() const;
  /// A row-major copy; InvalidArgument if T is not the C++ type of the dtype.
  template <Element T> std::vector<T> to_vector() const {
    const std::span<const T> values = elements<T>();
    return {values.begin(), values.end()};
  }
  /// The elements without a copy, row-major; valid while a handle lives, so not of a temporary. InvalidArgument as
  /// to_vector().
  template <Element T> std::span<const T> span() const& { return elements<T>(); }
  template <Element T> std::span<const T> span() const&& = delete;
  /// Along axis 0; OutOfRange past its ends. Negative indices count from the end.
  Tensor operator[](std::int64_t index) const;
#if __cpp_multidimensional_subscript >= 202110L
  template <class... Index>
    requires(sizeof...(Index) > 1)
  Tensor operator[](Index...) const = delete;  // x(i, j)
#endif
  /// The elements that subscripts name, as NumPy reads x[:, 1:, None, ..., -1, indices, mask]:
  /// x(all, slice(1, end), newaxis, ellipsis, -1, indices, mask). Dimensions that are not named stay whole. Integers
  /// and tensors of integers count from the end if they are negative. Slices are clamped to the dimension; if it is a
  /// symbol, every call is checked instead. Tensors of integers broadcast together, and their dimensions come first if
  /// a slice, a new axis or the ellipsis stands between them, else where they stand; integers beside them count as such
  /// tensors. A tensor of booleans [n1 ... nk] stands for k dimensions and takes the elements where it is true; its
  /// value must be known, so it cannot be an argument of a traced function. OutOfRange for an element outside; that of
  /// a tensor is found when the value is observed. InvalidArgument for more subscripts than dimensions, two ellipses,
  /// tensors of other types, tensors that do not broadcast, and booleans of another shape. Gradients add up where an
  /// element is read several times.
  Tensor operator()(const Subscript& a, const Subscript& b = {}, const Subscript& c = {}, const Subscript& d = {},
                    const Subscript& e = {}, const Subscript& f = {}, const Subscript& g = {}, const Subscript& h = {},
                    const Subscript& i = {}, const Subscript& j = {}) const;
  /// Rows [begin, end) of axis 0; OutOfRange past its ends: bounds are not clamped.
  Tensor rows(std::int64_t begin, std::int64_t end) const;
  /// The value of one boolean. Inside `function` it becomes a guard: each way is traced when a call first takes it.
  explicit operator bool() const;
  /// Makes this handle one on x + y. Other handles on x keep it.
  Tensor& operator+=(const Tensor& y);
  Tensor& operator+=(Scalar y);
  /// Makes this handle one on x - y.
  Tensor& operator-=(const Tensor& y);
  Tensor& operator-=(Scalar y);
  /// Makes this handle one on x * y, elementwise.
  Tensor& operator*=(const Tensor& y);
  Tensor& operator*=(Scalar y);
  /// Makes this handle one on x / y, elementwise.
  Tensor& operator/=(const Tensor& y);
  Tensor& operator/=(Scalar y);
  friend std::ostream& operator<<(std::ostream& out, const Tensor& x);

  // For the rooms of the library.
  bool defined() const { return static_cast<bool>(node_); }
  const detail::Ref<detail::Node>& node() const { return node_; }
  const Spec& spec() const {
    if (!node_) [[unlikely]]
      fail_empty();
    return node_->spec;
  }
  bool is_symbolic() const { return node_ && node_->trace; }
  /// Observes: computes all that is pending. An error within a trace. The buffer may be a device's: use host() to read
  /// it.
  detail::Buffer& observed() const;
  /// Its elements in the host's memory, row-major; valid while a handle lives. Waits until they are computed, and
  /// copies them from a device with memory of its own, once.
  template <class T = void> const T* host() const { return static_cast<const T*>(observed().host()); }
  /// host() as a buffer.
  detail::Ref<detail::Buffer> host_buffer() const;
  /// A leaf with this value.
  static Tensor of_buffer(const Spec& spec, detail::Ref<detail::Buffer> value);
  /// A symbol of trace `trace`.
  static Tensor parameter(const Spec& spec, std::uint32_t trace);

 private:
  template <Element T> std::span<const T> elements() const {
    check_element(dtype_of<T>());
    return {host<T>(), static_cast<std::size_t>(spec().shape.size())};
  }
  void check_element(DType asked) const;
  [[noreturn]] static void fail_empty();
  detail::Ref<detail::Node> node_;
};

bool operator==(const Tensor&, const Tensor&) = delete;  // equal(a, b) elementwise, or bitwise_equal(a, b)
bool operator==(const Tensor&, Scalar) = delete;         // equal(x, 0)
bool operator!=(const Tensor&, const Tensor&) = delete;  // not_equal(a, b)
bool operator!=(const Tensor&, Scalar) = delete;         // not_equal(x, 0)

namespace detail::inline rooms {

/// Applies `op`: the one door through which nodes are made.
Tensor make_node(AnyOp op, In inputs);

template <class T> Tensor apply(const T& op, In in) {
  if constexpr (!detail::is_complete_op<T>()) {
    return {};
  } else if constexpr (detail::Expands<T>) {
    (void)detail::Described<T>::enrolled;
    return op.expand(in);
  } else {
    return make_node(AnyOp::of(op), in);
  }
}

/// Operands side by side, without counting them again: the caller holds them until the op is applied.
template <std::size_t n> class Lent {
 public:
  explicit Lent(const std::same_as<Tensor> auto&... in) : tensors_{Tensor(Ref<Node>::of_counted(in.node().get()))...} {}
  ~Lent() {}
  Lent(const Lent&) = delete;
  operator In() const { return tensors_; }

 private:
  union {
    Tensor tensors_[n];  // never destroyed
  };
};

template <class T, std::convertible_to<Tensor>... Inputs> Tensor apply(const T& op, const Inputs&... in) {
  if constexpr (sizeof...(in) > 0 && (std::same_as<Inputs, Tensor> && ...)) {
    return apply(op, In(Lent<sizeof...(in)>(in...)));
  } else {
    const std::array<Tensor, sizeof...(Inputs)> inputs{Tensor(in)...};
    return apply(op, In(inputs));
  }
}

}  // namespace detail::inline rooms

}  // namespace gradus
