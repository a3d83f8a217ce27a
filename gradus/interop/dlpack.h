/// Tensors of other libraries by DLPack, which NumPy, PyTorch, JAX and TensorFlow speak: memory with its shape, strides
/// and owner, without a copy in either direction.
///
///   const Tensor x = from_dlpack(managed);                          // a DLManagedTensor* or DLManagedTensorVersioned*
///   auto* given = to_dlpack<DLManagedTensorVersioned>(x);           // of <dlpack/dlpack.h>, or of declarations below
///
/// In Python these pointers are in capsules named dltensor and dltensor_versioned.
#pragma once
#include <cstddef>
#include <cstdint>
#include "gradus/graph/tensor.h"

namespace gradus {

/// The library's own declarations of DLPack 1.x, with its layout.
namespace dlpack {

/// The version that is written; another major version has another layout.
inline constexpr std::uint32_t major_version = 1, minor_version = 0;

/// Kinds of devices; further ones have memory that the processor cannot read.
inline constexpr std::int32_t processor = 1, cuda = 2, pinned_for_cuda = 3, pinned_for_rocm = 11;
/// Kinds of elements.
inline constexpr std::uint8_t signed_integer = 0, unsigned_integer = 1, floating = 2, bfloat = 4, complex = 5,
                              boolean = 6;
/// The bits of `flags`.
inline constexpr std::uint64_t read_only = 1, is_copied = 2;

/// The device of a memory.
struct Device {
  std::int32_t device_type;  // its kind
  std::int32_t device_id;    // its number
};
/// The type of an element.
struct DataType {
  std::uint8_t code;    // its kind
  std::uint8_t bits;    // its size
  std::uint16_t lanes;  // numbers of an element
};
/// A description of an array in memory.
struct Tensor {
  void* data;                 // its begin, without the offset
  Device device;              // where it is
  std::int32_t ndim;          // number of axes
  DataType dtype;             // of an element
  std::int64_t* shape;        // extents
  std::int64_t* strides;      // in elements; null: row-major
  std::uint64_t byte_offset;  // of the first element
};
/// A tensor with its owner, as before version 1.
struct Managed {
  Tensor dl_tensor;           // the memory
  void* manager_ctx;          // of the deleter
  void (*deleter)(Managed*);  // releases the owner; may be null
};
/// Version of a description.
struct Version {
  std::uint32_t major, minor;  // equal major versions have the same layout
};
/// A tensor with its owner.
struct ManagedVersioned {
  Version version;                     // of the layout
  void* manager_ctx;                   // of the deleter
  void (*deleter)(ManagedVersioned*);  // releases the owner; may be null
  std::uint64_t flags;                 // read_only, is_copied
  Tensor dl_tensor;                    // the memory
};

/// True for types with the layout of ManagedVersioned.
template <class T>
constexpr bool is_versioned = [] {
  if constexpr (requires(T x) { x.version.major, x.flags, x.dl_tensor; })
    return sizeof(T) == sizeof(ManagedVersioned) && offsetof(T, flags) == offsetof(ManagedVersioned, flags) &&
           offsetof(T, dl_tensor) == offsetof(ManagedVersioned, dl_tensor);
  else return false;
}();
/// True for types with the layout of Managed.
template <class T>
constexpr bool is_unversioned = [] {
  if constexpr (requires(T x) { x.dl_tensor, x.manager_ctx; } && !requires(T x) { x.version; })
    return sizeof(T) == sizeof(Managed) && offsetof(T, manager_ctx) == offsetof(Managed, manager_ctx);
  else return false;
}();

}  // namespace dlpack

/// Options of from_dlpack.
struct FromDLPackOptions {
  bool copy_if_needed = false;  // as in BorrowOptions
  bool padded = false;          // as in BorrowOptions
};

namespace detail {
Tensor from_dlpack(void* managed, bool versioned, const FromDLPackOptions& options);
void* to_dlpack(const Tensor& x, bool versioned);
}  // namespace detail

/// A tensor on the memory of `managed`, which it takes over in any case: the deleter is called once, when the memory is
/// no longer needed, on whichever thread that is, or at once if an error is thrown. The rules are those of borrow.
/// InvalidArgument for null, for another major version, memory that the processor cannot read, elements that are no
/// dtype here (complex, floats of 4 or 8 bits, several lanes), and for memory that borrow refuses.
template <class M>
  requires(dlpack::is_versioned<M> || dlpack::is_unversioned<M>)
Tensor from_dlpack(M* managed, const FromDLPackOptions& options = {}) {
  return detail::from_dlpack(managed, dlpack::is_versioned<M>, options);
}

/// The values of x, which are computed now, for another library: row-major, in the host's memory (a copy if the device
/// has memory of its own), kept until the deleter is called, on any thread. They must not be written: flags say so,
/// which the type without a version does not have.
template <class M = dlpack::ManagedVersioned>
  requires(dlpack::is_versioned<M> || dlpack::is_unversioned<M>)
M* to_dlpack(const Tensor& x) {
  return static_cast<M*>(detail::to_dlpack(x, dlpack::is_versioned<M>));
}

}  // namespace gradus
