/// The memory that tensors and results of programs have on a device of a plugin: its amount, limit and holders.
#pragma once
#include <mutex>
#include <set>
#include <string>
#include "gradus/tensor/memory.h"
#include "gradus/tensor/shape.h"

namespace gradus::xla {

class DeviceAccount {
 public:
  /// `limit`: of the plugin, 0 if it does not say.
  DeviceAccount(const Device& device, std::int64_t limit) : device_(device), found_limit_(limit) {}
  DeviceAccount(const DeviceAccount&) = delete;

  /// A holder of memory.
  struct Holder {
    std::int64_t bytes = 0;
    std::string label;
  };
  void add(const Holder& holder);
  void remove(const Holder& holder) noexcept;

  /// OutOfMemory if this much more would exceed the limit. `what`: asks for it.
  void require_room(std::int64_t bytes, const std::string& what);
  /// The OutOfMemory for memory that the plugin does not have.
  [[noreturn]] void fail(std::int64_t bytes, const std::string& what, std::string_view why);

  MemoryUse use();
  void reset_peak();
  void set_limit(std::size_t bytes);

 private:
  std::int64_t limit() const { return own_limit_ ? own_limit_ : found_limit_; }
  std::string holders_text() const;
  [[noreturn]] void throw_error(std::int64_t bytes, const std::string& what, std::string_view why) const;

  const Device device_;
  const std::int64_t found_limit_;
  std::mutex guard_;  // guards the members below
  std::int64_t own_limit_ = 0, live_ = 0, peak_ = 0;
  std::set<const Holder*> large_;
};

}  // namespace gradus::xla
