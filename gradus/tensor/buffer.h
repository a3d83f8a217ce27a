/// Reference-counted memory of tensors, from a caching allocator: header and data are one block, and blocks that a
/// thread freed serve its next allocations. Any thread may free what another one allocated.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include "gradus/base/ref.h"
#include "gradus/tensor/memory.h"

namespace gradus {

class Buffer : public RefCounted {
 public:
  /// Data aligned to 64 bytes, with 64 bytes behind it that may be read and written, so that a masked tail may be moved
  /// as a whole vector. Its contents are undefined. ResourceExhausted past the limit, naming `what` (a literal).
  static Ref<Buffer> allocate(std::int64_t bytes, const char* what = "tensor");
  /// Memory that `owner`, or the caller, keeps alive. It is not counted, and need not have padding.
  static Ref<Buffer> borrow(void* data, std::int64_t bytes, std::shared_ptr<const void> owner = {});

  template <class T = void> T* data() const { return static_cast<T*>(data_); }
  std::int64_t bytes() const { return bytes_; }
  /// What errors about memory call this buffer: "parameter dense/kernel f32[784,128]". Kept for 1 MiB and more.
  void set_label(std::string label);

 private:
  friend void dispose(Buffer* buffer) noexcept;
  friend struct BorrowedBuffer;
  Buffer(void* data, std::int64_t bytes, int kind) : kind_(kind), data_(data), bytes_(bytes) {}

  int kind_;  // a size class of the heap, or a larger one's kind
  void* data_;
  std::int64_t bytes_;
  std::unique_ptr<memory::Holder> holder_;
};

void dispose(Buffer* buffer) noexcept;

}  // namespace gradus
