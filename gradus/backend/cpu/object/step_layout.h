/// The tables by which a compiled step runs without the library: the object file holds them as constants, and
/// standalone_step.cpp, which comes along, goes through them.
#pragma once
#include <cstdint>
#include "gradus/backend/cpu/run/thunk.h"

namespace gradus::object {

/// Where something lies.
struct Address {
  enum Kind : std::int64_t { state, workspace, argument, constant };
  std::int64_t kind = state;
  std::int64_t offset = 0;  // bytes; of an argument: which one
  const void* bytes = nullptr;
};

template <class Entry> struct Table {
  const Entry* entries = nullptr;
  std::int64_t count = 0;
};

struct SlotEntry {
  std::int64_t slot = 0;
  Address address = {};
};
struct CopyEntry {
  Address to = {}, from = {};
  std::int64_t bytes = 0;
};
struct JobEntry {
  KernelFunction run = nullptr;
  const void* data = nullptr;
  std::int64_t extent = 0, thunk = 0;
  std::int64_t scratch = 0;   // in the workspace
  std::int64_t failure = 0;   // the state's value if a check of this job fails; 0: it has none
  std::int64_t may_fail = 0;  // nonzero: check for a failure after it
};

/// Offsets are in the state, or in the workspace, which is the part of it from `workspace` on, rounded up to a cache
/// line.
struct Step {
  Table<SlotEntry> slots;
  Table<CopyEntry> before, staged, after;  // around the jobs: arguments; copies that wait for other reads; results
  Table<JobEntry> jobs;
  const std::int64_t* dimensions = nullptr;
  std::int64_t workspace = 0, slot_table = 0;
  std::int64_t failure = 0;        // three i64: the check, the index, the value there
  std::int64_t random_state = -1;  // -1: nothing random in it
  std::int64_t key = 0;            // in the workspace
};

struct Init {
  std::int64_t bytes = 0;  // of the state
  Table<CopyEntry> values;
};

/// The program of a region, in memory of its own: an error, a table of slots, the arena.
struct NestedStep {
  static constexpr std::int64_t slot_table = 64;
  struct Output {
    std::int64_t slot = -1, input = -1, earlier = -1, bytes = 0;
  };
  struct InOutput {
    std::int64_t value = 0, output = 0;
  };
  Table<SlotEntry> slots;
  Table<JobEntry> jobs;
  Table<std::int64_t> inputs;  // their slots
  Table<Output> outputs;
  Table<InOutput> inside;
  const std::int64_t* dimensions = nullptr;
};
struct BranchStep {
  const NestedStep *if_true = nullptr, *if_false = nullptr;
  std::int64_t memory = 0;                // a slot, as are:
  Table<std::int64_t> operands, outputs;  // the first operand chooses
};
/// As run/carries.h has it; slots, -1: there is none.
struct CarryStep {
  std::int64_t number = 0, output = 0, bytes = 0, in_place = 0;
  std::int64_t offsets[2] = {-1, -1};
  std::int64_t operand = 0, result = -1, history = -1;
};
struct ScanStep {
  const NestedStep *body = nullptr, *last = nullptr;
  std::int64_t memory = 0, carry_bytes = 0, iterations = 0, counted = 0, reverse = 0, carries = 0, first_carry = 0;
  Table<std::int64_t> operands;           // slots
  Table<std::int64_t> step_in, step_out;  // bytes
  Table<std::int64_t> outputs;            // slots, of those behind the carries
  Table<CarryStep> plans;
};
struct WhileStep {
  const NestedStep *condition = nullptr, *body = nullptr;
  std::int64_t memory = 0, carry_bytes = 0, condition_bytes = 0, most = 0, count = -1;  // count: a slot
  Table<std::int64_t> operands;
  Table<CarryStep> plans;
};

/// Facts about the processor when the step was compiled: kernels decide by them.
struct Facts {
  std::int64_t isa = 0;  // an Isa
  std::int64_t pair_products = 0, prefers_pair_products = 0, prefers_near_panels = 0;
  std::int64_t second_level_cache = 0;
};

}  // namespace gradus::object
