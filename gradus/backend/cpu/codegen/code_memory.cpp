#include "gradus/backend/cpu/codegen/code_memory.h"
#include <sys/mman.h>
#include <unistd.h>

namespace gradus::cpu_backend {
namespace {

std::size_t in_pages(std::size_t bytes) {
  static const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  return (bytes + page - 1) / page * page;
}

}  // namespace

CodeMemory::~CodeMemory() {
  if (mapped_) munmap(mapped_, bytes_);
}

void CodeMemory::reserve(std::size_t code_bytes, std::size_t constant_bytes, std::size_t data_bytes) {
  const std::size_t code = in_pages(code_bytes), constants = in_pages(constant_bytes), data = in_pages(data_bytes);
  if (code + constants + data == 0) return;
  void* const made = mmap(nullptr, code + constants + data, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (made == MAP_FAILED) return;
  mapped_ = static_cast<std::byte*>(made);
  bytes_ = code + constants + data;
  code_.begin_ = mapped_, code_.size_ = code;
  constants_.begin_ = mapped_ + code, constants_.size_ = constants;
  data_.begin_ = mapped_ + code + constants, data_.size_ = data;
}

std::byte* CodeMemory::Region::take(std::size_t bytes, std::size_t alignment) {
  const std::size_t at = alignment > 1 ? (used_ + alignment - 1) / alignment * alignment : used_;
  if (at > size_ || bytes > size_ - at) return nullptr;
  used_ = at + bytes;
  return begin_ + at;
}

bool CodeMemory::protect() {
  const auto becomes = [](const Region& region, int protection) {
    return region.size_ == 0 || mprotect(region.begin_, region.size_, protection) == 0;
  };
  // Processors other than x86 keep instructions apart from data until they are told of new ones.
  if (code_.size_ > 0)
    __builtin___clear_cache(reinterpret_cast<char*>(code_.begin_), reinterpret_cast<char*>(code_.begin_ + code_.size_));
  return becomes(code_, PROT_READ | PROT_EXEC) && becomes(constants_, PROT_READ);
}

}  // namespace gradus::cpu_backend
