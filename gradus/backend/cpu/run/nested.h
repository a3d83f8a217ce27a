/// A program as a part of another one: the body of a branch or a loop. It allocates nothing: slots, temporaries and
/// scratch lie in memory that the caller gives, once for all iterations, and so do inputs and outputs. All members of a
/// team make the same calls, each with a table of slots of its own.
#pragma once
#include "gradus/backend/cpu/run/binding.h"

namespace gradus {

class NestedProgram {
 public:
  NestedProgram() = default;
  /// `carries`: the inputs that iterations of a loop hand on, if members may go through it with rows of their own.
  NestedProgram(std::shared_ptr<const CpuProgram> program, std::span<const std::int64_t> symbols,
                std::vector<int> carries = {}, std::int64_t iterations = 0);

  explicit operator bool() const { return static_cast<bool>(program_); }
  const CpuProgram& program() const { return *program_; }
  /// The bytes of memory that runs need; a multiple of 64.
  std::int64_t bytes() const { return bytes_; }
  /// bytes() for a program with `slots` slots and such an arena, for as many threads as now.
  static std::int64_t bytes_for(std::int64_t slots, std::int64_t arena_bytes);
  /// The number of workers that are worth it, and whether data can make it fail.
  int team() const { return binding_->team; }
  /// The nanoseconds of a run on one thread, estimated, and how often its members meet.
  double cost_ns() const { return binding_->cost_ns; }
  std::int64_t meetings() const { return binding_->by_rows.jobs.empty() ? std::ssize(binding_->jobs) : 0; }
  bool may_fail() const { return may_fail_; }
  // For object files (control_images.h).
  const Binding& binding() const { return *binding_; }
  const std::vector<std::int64_t>& output_bytes() const { return output_bytes_; }
  /// Where in the memory the arena begins.
  std::int64_t arena_offset() const;

  /// True if this member reads and writes nothing but rows of its own of the values that are handed on. Then run() does
  /// not wait.
  bool keeps_apart(const TeamMember& member) const;
  /// Lays out `memory`, which is aligned to 64 bytes and unused, before the first run in it.
  void prepare(const TeamMember& member, std::byte* memory) const;
  /// Output k may lie where an input lies that it may overwrite; otherwise outputs overlap nothing. Readers of outputs
  /// have to meet the others first; the next run does, unless members keep apart. False, to all members, if data are at
  /// fault.
  [[nodiscard]] bool run(const TeamMember& member, std::byte* memory, std::span<const void* const> inputs,
                         std::span<void* const> outputs) const;
  /// The exception of a run that failed.
  std::exception_ptr failure(std::byte* memory) const;

 private:
  static constexpr std::int64_t error_bytes = 64;
  static ErrorWord& error_in(std::byte* memory) { return *reinterpret_cast<ErrorWord*>(memory); }
  static std::int64_t table_bytes(std::int64_t slots);
  std::int64_t table_bytes() const { return table_bytes(program_->slots()); }
  void** slots_in(const TeamMember& member, std::byte* memory) const;
  std::byte* arena_of(const TeamMember& member, std::byte* memory) const;
  void copy_outputs(std::span<const void* const> inputs, std::span<void* const> outputs, std::int64_t begin,
                    std::int64_t end, std::int64_t rows) const;

  std::shared_ptr<const CpuProgram> program_;
  std::shared_ptr<const Binding> binding_;
  std::vector<std::int64_t> output_bytes_;
  std::vector<std::size_t> copied_;  // outputs that are inputs or earlier outputs
  int most_members_ = 1;
  bool may_fail_ = false;
  std::int64_t bytes_ = 0;
};

}  // namespace gradus
