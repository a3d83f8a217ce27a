/// Buffer: reference-counted memory of tensors, from a caching allocator. Header and data are one block. A thread
/// allocates from blocks that it freed before. Any thread may free a block of another one.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include "gradus/base/ref.h"
#include "gradus/tensor/memory.h"

namespace gradus {

namespace detail::inline rooms {

/// Memory of a device that the host cannot read. Its content may still be on its way.
class DeviceMemory {
 public:
  virtual ~DeviceMemory() = default;
  /// Returns when it is complete. Throws the error that kept it from being computed.
  virtual void wait() const = 0;
  /// Its bytes for the host, copied at the first call, which waits. Valid while this lives.
  virtual const void* host() = 0;
};

class Buffer : public RefCounted {
 public:
  /// Data aligned to 64 bytes, with 64 bytes behind it that may be read and written, so that a masked tail may be moved
  /// as a whole vector. Its contents are undefined. It counts for the logical device of the innermost OnLogicalDevice
  /// of this thread. ResourceExhausted past that device's limit, naming `what` (a literal).
  static Ref<Buffer> allocate(std::int64_t bytes, const char* what = "tensor");
  /// Memory that `owner`, or the caller, keeps alive. It is not counted, and need not have padding.
  static Ref<Buffer> borrow(void* data, std::int64_t bytes, std::shared_ptr<const void> owner = {});

  /// Memory of a device.
  static Ref<Buffer> of_device(std::shared_ptr<DeviceMemory> memory, std::int64_t bytes);

  /// The host's memory; null if it is a device's.
  template <class T = void> T* data() const { return static_cast<T*>(data_); }
  /// To be read: data(), or what the device gives of its own.
  const void* host() const { return data_ ? data_ : host_of_device(); }
  /// Null if it is the host's.
  DeviceMemory* device_memory() const;
  /// `buffer` itself, or one of the host's memory with its bytes.
  static Ref<Buffer> on_host(Ref<Buffer> buffer);
  std::int64_t bytes() const { return bytes_; }
  /// Names the buffer for errors about memory, such as "parameter dense/kernel f32[784,128]". Only buffers of 1 MiB or
  /// more keep it.
  void set_label(std::string label);

 private:
  friend void dispose(Buffer* buffer) noexcept;
  friend struct BorrowedBuffer;
  const void* host_of_device() const;
  Buffer(void* data, std::int64_t bytes, int kind, int device = 0)
      : kind_(static_cast<std::int16_t>(kind)),
        device_(static_cast<std::int16_t>(device)),
        data_(data),
        bytes_(bytes) {}

  std::int16_t kind_;    // a size class of the heap, or a larger one's kind
  std::int16_t device_;  // the logical device whose account it is in
  void* data_;
  std::int64_t bytes_;
  std::unique_ptr<memory::Holder> holder_;
};

void dispose(Buffer* buffer) noexcept;

/// In its lifetime what this thread allocates counts for logical device `index` of the processor.
class OnLogicalDevice {
 public:
  [[nodiscard]] explicit OnLogicalDevice(int index);
  ~OnLogicalDevice();
  OnLogicalDevice(const OnLogicalDevice&) = delete;

 private:
  const int before_;
};

}  // namespace detail::inline rooms

}  // namespace gradus
