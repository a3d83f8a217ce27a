/// Values of tensors in memory: the library's own, or borrowed.
#pragma once
#include "gradus/base/rooms.h"
#include "gradus/graph/tensor.h"
#include "gradus/tensor/buffer.h"

namespace gradus::erased {

/// A counted handle: one pointer.
using gradus::detail::Ref;
/// Memory of a tensor. `Buffer::borrow(data, bytes, owner)` takes memory without a copy; `owner` is destroyed, on any
/// thread, once no tensor needs it, and no one writes there before. `Buffer::allocate(bytes)` is memory to be filled.
using gradus::detail::Buffer;
/// Memory of a device, which the host cannot read.
using gradus::detail::DeviceMemory;
/// A list of tensors, and a view of one.
using gradus::In;
using gradus::Tensors;

/// A tensor with these elements, row-major. InvalidArgument unless the buffer has the bytes of the spec.
inline Tensor tensor_of(const Spec& spec, Ref<Buffer> elements) {
  require(elements && elements->bytes() >= bytes_of(spec), "tensor_of: ", spec, " has ", bytes_of(spec),
          " bytes, the buffer ", elements ? elements->bytes() : 0);
  return Tensor::of_buffer(spec, std::move(elements));
}
/// True if `x` has a value or will have one: false for a tensor that was default-constructed.
inline bool is_defined(const Tensor& x) { return x.defined(); }
/// True if `x` belongs to a function that is being traced, so that its value is known only if it follows from
/// constants.
inline bool is_symbolic(const Tensor& x) { return x.is_symbolic(); }
/// The elements in the host's memory, row-major, which live as long as the handle. Waits until they are computed.
inline Ref<Buffer> elements_of(const Tensor& x) { return x.host_buffer(); }

}  // namespace gradus::erased
