/// Types and devices of DLPack, and the two ways of ownership.
#include "gradus/interop/dlpack.h"
#include <optional>
#include <string>
#include <vector>
#include "gradus/base/rooms.h"
#include "gradus/interop/borrow.h"

namespace gradus {
namespace {

dlpack::DataType element_of_dtype(DType dtype) {
  const auto bits = static_cast<std::uint8_t>(8 * size_of(dtype));
  if (dtype == boolean) return {dlpack::boolean, bits, 1};
  if (dtype == bf16) return {dlpack::bfloat, bits, 1};
  if (is_floating(dtype)) return {dlpack::floating, bits, 1};
  return {is_signed(dtype) ? dlpack::signed_integer : dlpack::unsigned_integer, bits, 1};
}

std::string element_text(const dlpack::DataType& type) {
  const char* const kinds[] = {"signed integers", "unsigned integers", "floats",  "handles",
                               "bfloats",         "complex numbers",   "booleans"};
  const std::string kind = type.code < std::size(kinds) ? kinds[type.code] : text("kind ", int{type.code});
  return text(kind, " of ", int{type.bits}, " bits", type.lanes == 1 ? "" : text(" with ", type.lanes, " lanes"));
}

DType dtype_of_element(const dlpack::DataType& type) {
  for (const DType each : all_dtypes) {
    const dlpack::DataType known = element_of_dtype(each);
    if (known.code == type.code && known.bits == type.bits && type.lanes == 1) return each;
  }
  TextStream names;
  for (const DType each : all_dtypes) names << (each == all_dtypes[0] ? "" : ", ") << each;
  throw InvalidArgument(text("from_dlpack: no dtype has elements that are ", element_text(type), "; known are ",
                             names.str(), ": convert the tensor where it was made"));
}

void check_device(const dlpack::Device& device) {
  const bool is_readable = device.device_type == dlpack::processor || device.device_type == dlpack::pinned_for_cuda ||
                           device.device_type == dlpack::pinned_for_rocm;
  require(is_readable, "from_dlpack: the memory is of ",
          device.device_type == dlpack::cuda ? text("CUDA device ", device.device_id)
                                             : text("device ", device.device_id, " of kind ", device.device_type),
          ", which the processor cannot read; copy the tensor to the processor where it was made");
}

Tensor tensor_on(const dlpack::Tensor& given, std::shared_ptr<const void> owner, const FromDLPackOptions& options) {
  check_device(given.device);
  require(given.ndim >= 0 && given.ndim <= Shape::max_rank, "from_dlpack: the tensor has ", given.ndim,
          " axes, expected 0 to ", Shape::max_rank);
  require(given.ndim == 0 || given.shape != nullptr, "from_dlpack: the tensor has ", given.ndim, " axes and no shape");
  Shape shape;
  for (std::int32_t axis = 0; axis < given.ndim; ++axis) {
    require(given.shape[axis] >= 0, "from_dlpack: axis ", axis, " has ", given.shape[axis], " elements");
    shape.push_back(given.shape[axis]);
  }
  BorrowOptions borrowed{.owner = std::move(owner), .padded = options.padded, .copy_if_needed = options.copy_if_needed};
  if (given.strides) borrowed.strides.assign(given.strides, given.strides + given.ndim);
  const std::byte* const first = given.data ? static_cast<const std::byte*>(given.data) + given.byte_offset : nullptr;
  return detail::borrow("from_dlpack", {first, -1}, {dtype_of_element(given.dtype), shape}, borrowed);
}

template <class M> std::shared_ptr<const void> owned(M* managed) {
  return std::shared_ptr<const void>(managed, [managed](const void*) {
    if (managed->deleter) managed->deleter(managed);
  });
}

/// A capsule for another library: the memory, and the arrays that describe it.
template <class M> struct Given {
  M managed;
  Ref<Buffer> buffer;
  std::vector<std::int64_t> shape, strides;
};

template <class M> M* given(const Tensor& x) {
  auto made = std::make_unique<Given<M>>();
  made->buffer = x.host_buffer();
  const Shape dense = dense_strides(x.shape());
  made->shape.assign(x.shape().begin(), x.shape().end());
  made->strides.assign(dense.begin(), dense.end());
  made->managed.dl_tensor = {.data = const_cast<void*>(made->buffer->host()),
                             .device = {dlpack::processor, 0},
                             .ndim = x.shape().rank(),
                             .dtype = element_of_dtype(x.dtype()),
                             .shape = made->shape.data(),
                             .strides = made->strides.data(),
                             .byte_offset = 0};
  made->managed.manager_ctx = made.get();
  made->managed.deleter = [](M* managed) { delete static_cast<Given<M>*>(managed->manager_ctx); };
  return &made.release()->managed;
}

}  // namespace

Tensor detail::from_dlpack(void* managed, bool versioned, const FromDLPackOptions& options) {
  require(managed != nullptr, "from_dlpack: the pointer is null; a capsule of Python gives its pointer once");
  if (!versioned) {
    auto* const taken = static_cast<dlpack::Managed*>(managed);
    return tensor_on(taken->dl_tensor, owned(taken), options);
  }
  auto* const taken = static_cast<dlpack::ManagedVersioned*>(managed);
  const auto owner = owned(taken);
  require(taken->version.major == dlpack::major_version, "from_dlpack: the tensor has version ", taken->version.major,
          '.', taken->version.minor, " of DLPack, expected ", dlpack::major_version,
          ".x; ask the other library for it");
  return tensor_on(taken->dl_tensor, owner, options);
}

void* detail::to_dlpack(const Tensor& x, bool versioned) {
  if (!versioned) return given<dlpack::Managed>(x);
  dlpack::ManagedVersioned* const made = given<dlpack::ManagedVersioned>(x);
  made->version = {dlpack::major_version, dlpack::minor_version};
  made->flags = dlpack::read_only;
  return made;
}

}  // namespace gradus
