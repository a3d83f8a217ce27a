/// CodeMemory: the sections of one object that is linked in place, in one mapping. Code reads its constants relative to
/// itself, with 32 bits, and LLVM's linker cuts off longer distances. LLVM's own manager maps each section for itself:
/// in a process with much memory they may lie more than 2 GiB apart.
#pragma once
#include <cstddef>
#include <cstdint>

namespace gradus::cpu_backend {

class CodeMemory {
 public:
  CodeMemory() = default;
  CodeMemory(const CodeMemory&) = delete;
  ~CodeMemory();

  /// Sections of one kind, contiguous.
  class Region {
   public:
    /// Null if that is more than was reserved.
    std::byte* take(std::size_t bytes, std::size_t alignment);

   private:
    friend class CodeMemory;
    std::byte* begin_ = nullptr;
    std::size_t size_ = 0, used_ = 0;
  };
  /// Maps room for all, once. If there is none, nothing can be taken.
  void reserve(std::size_t code_bytes, std::size_t constant_bytes, std::size_t data_bytes);
  Region& code() { return code_; }
  Region& constants() { return constants_; }
  Region& data() { return data_; }
  /// From now on code can be run, and neither it nor constants be written. False, and errno says why, if that fails.
  bool protect();

 private:
  std::byte* mapped_ = nullptr;
  std::size_t bytes_ = 0;
  Region code_, constants_, data_;
};

}  // namespace gradus::cpu_backend
