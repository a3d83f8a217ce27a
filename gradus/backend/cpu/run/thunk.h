/// Thunks: the pieces of a program, as the executor sees them. A thunk is bound to the values of the program's symbols
/// once, and then run by one or several workers.
#pragma once
#include <atomic>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>
#include "gradus/backend/cpu/tiles/used_tiles.h"
#include "gradus/base/rooms.h"
#include "gradus/compiler/loops.h"

namespace gradus {

namespace detail::inline rooms {
class ActivityLog;
}  // namespace detail::inline rooms
class TeamBarrier;
class KernelTimes;
class Share;

/// One of the workers that run a program together.
struct TeamMember {
  int worker = 0, team = 1;
  TeamBarrier* barrier = nullptr;  // where they wait for each other; of one alone null
  Share* shares = nullptr;         // of all, worker by worker (executor.cpp)
  ActivityLog* log = nullptr;      // where this worker logs its work, while a profile is taken
  /// Returns when all members have arrived: writes of any of them before are seen by all after.
  void meet() const;
  /// Work in turns, of a thunk's in_turns: returns when the member before this one has ended as many turns.
  void await_turn() const;
  void end_turn() const;
};

/// The failure that depends on data: of several in one stage that of the first thunk, and there the lowest index.
struct ErrorWord {
  std::atomic<std::int64_t> thunk{-1};  // -1: none
  std::int64_t index = 0;               // of the offending element
  std::int64_t value = 0;               // the value there
  std::exception_ptr nested = {};       // of a branch or a loop: the failure within
};

/// The arguments of a kernel.
struct KernelArguments {
  void* const* slots;              // per value of the graph: where it lies
  const std::int64_t* dimensions;  // the extents of the program's symbolic dimensions, by DimensionTable position
  void* scratch;                   // of this worker
  const void* data;                // the thunk's own
  ErrorWord* error;
  std::int64_t thunk;                  // its number in the program: an error word's value
  const TeamMember* member = nullptr;  // runs a branch or a loop, in turns or together
  Share* share = nullptr;              // if set, for Cut::by_kernel: its units, some of which others take over
};
/// How one worker's part of a thunk may be cut, so that others take over some of it when they are done.
enum class Cut : std::uint8_t {
  anywhere,   // a call for a few grains takes about their part of the time
  by_kernel,  // the kernel asks its Share for the next units; of grain 1
  nowhere,    // each call takes the time of many grains besides: it packs, or reads the operands of all grains
};
/// A kernel found `value` at `index`, which may not be. It goes on without that element.
void report_failure(const KernelArguments* arguments, std::int64_t index, std::int64_t value);
using KernelFunction = void (*)(const KernelArguments* arguments, std::int64_t begin, std::int64_t end);

/// The distinct symbolic dimensions that a program's kernels ask for.
class DimensionTable {
 public:
  int position_of(std::int64_t dimension);  // enters it if it is new
  const std::vector<std::int64_t>& all() const { return dimensions_; }

 private:
  std::vector<std::int64_t> dimensions_;
};

/// A thunk's data in an object file (data_image.h).
struct DataImage;

/// The part of a thunk that is known only once the symbols have values, where dimensions cannot say it.
struct BoundThunk {
  std::shared_ptr<const void> data;
  std::int64_t extent = 1, grain = 1, bytes = 0, flops = 0, worker_scratch = 0, shared_scratch = 0;
  std::string failure;
  std::string_view fails_as = {};  // whose name stands before it, if not that of the op itself; a literal
  Cut cut = Cut::anywhere;
  int team = 1;                      // of a branch or a loop: how many workers are worth it
  bool may_fail = false;             // something within a branch or a loop may
  double nested_ns = 0;              // the time of the programs within on one thread, estimated, and
  std::int64_t nested_meetings = 0;  // how often their members meet
  /// If set, it runs in place of the thunk's: a kernel that is one of several ways alone, so that an object file takes
  /// that way along.
  KernelFunction run = nullptr;
  /// If set, how a team divides it: every member gets its part of [0, turns), which may be empty, and continues the
  /// work of the members before it, piece after piece (TeamMember).
  KernelFunction in_turns = nullptr;
  std::int64_t turns = 0;
  /// If set, how a team does it where grains cannot be divided evenly: every member calls it with the whole extent, and
  /// they meet within. Each needs so much of its own then; only then it needs shared_scratch.
  KernelFunction together = nullptr;
  std::int64_t scratch_together = 0;
  /// If set, the same over [0, rows) of the result, whose rows follow each other, for members that have rows of their
  /// own; and the scratch for `rows` of them, or -1 if that is too slow.
  KernelFunction by_rows = nullptr;
  std::int64_t rows = 0;
  std::int64_t (*scratch_by_rows)(const void* data, std::int64_t rows) = nullptr;
  /// The second part of the thunk, which runs when all of the first is done, on the same data.
  struct Second {
    std::int64_t extent = 0, bytes = 0, flops = 0, worker_scratch = 0;
  } second = {};
  /// The tiles that its runs call: an object file has no others.
  cpu_backend::TileSet tiles = {};
  /// The data as they lie in an object file. Without it the kernel cannot come along there.
  DataImage (*image)(const void* data) = nullptr;
};

class CpuProgram;

/// One piece of work over [0, extent), which may be divided at multiples of `grain` without changing any bit.
struct Thunk {
  KernelFunction run = nullptr;
  std::shared_ptr<const void> data;
  int step = 0;             // whose part it is; thunks of one step run in order
  std::int64_t extent = 1;  // a dimension: may be symbolic
  std::int64_t grain = 1;
  std::int64_t bytes = 0;           // moved, and
  std::int64_t flops = 0;           // done, over the whole extent; dimensions: decide whether dividing is worth it
  std::int64_t worker_scratch = 0;  // bytes that each worker needs; a dimension
  std::int64_t shared_scratch = 0;  // bytes that live from the first to the last thunk of the step; a dimension.
  int shared_slot = -1;             // the slot (past the graph's values) that holds them
  std::string label;                // "add+relu+sum"
  /// True for a branch or a loop: every worker calls it with the whole extent, and they run `nested` together.
  bool controls = false;
  std::vector<std::shared_ptr<const CpuProgram>> nested = {};
  std::string failure;     // the message of ErrorWord here: "label {value} at index {index} is outside ..."
  std::int64_t words = 0;  // of generated code: how many i64 its data are
  bool is_second = false;  // of two parts: described by the thunk before it
  /// If set, it returns data, extent, ... failure once for all runs with these symbols, instead of the above.
  std::function<BoundThunk(std::span<const std::int64_t> symbols)> bind = {};
};

/// Generated code as it goes into an object file: the files, and the names of the functions in them.
struct KeptCode {
  std::vector<std::string> objects;
  std::map<KernelFunction, std::string> names;
};

/// All thunks of a graph and their data. `owner` keeps generated code alive.
struct Lowered {
  std::vector<Thunk> thunks;
  DimensionTable dimensions;
  int slots = 0;  // the graph's values and the shared scratches
  std::shared_ptr<const void> owner;
  std::size_t code_bytes = 0;               // of generated code
  std::shared_ptr<KernelTimes> times = {};  // if its kernels are measured
  std::shared_ptr<KeptCode> kept = {};      // if the program is for an object file
  bool balances = true;                     // threads that are done take over some of the others' work
};

}  // namespace gradus
