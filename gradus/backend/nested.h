/// A program as a part of another one: the body of a branch or a loop. It allocates nothing: slots, temporaries and
/// scratch lie in memory that the caller gives, once for all iterations, and so do inputs and outputs.
#pragma once
#include "gradus/backend/binding.h"

namespace gradus {

class NestedProgram {
 public:
  NestedProgram() = default;
  NestedProgram(std::shared_ptr<const Program> program, std::span<const std::int64_t> symbols);

  explicit operator bool() const { return static_cast<bool>(program_); }
  const Program& program() const { return *program_; }
  /// Of memory that runs need; a multiple of 64.
  std::int64_t bytes() const { return bytes_; }
  /// Lays out `memory`, which is aligned to 64 bytes, before the first run in it.
  void prepare(std::byte* memory) const;
  /// Output k may lie where an input lies that it may overwrite; otherwise outputs overlap nothing. OutOfRange where
  /// data are at fault. Runs on the whole pool: not to be called within it.
  void run(std::byte* memory, std::span<const void* const> inputs, std::span<void* const> outputs) const;

 private:
  std::int64_t arena_offset() const;
  std::shared_ptr<const Program> program_;
  std::shared_ptr<const Binding> binding_;
  std::vector<std::int64_t> output_bytes_;
  std::int64_t bytes_ = 0;
};

}  // namespace gradus
