/// Binding: a program for given extents and a given number of threads, with everything that each run would otherwise
/// compute again.
#pragma once
#include "gradus/backend/cpu/run/kernel_times.h"
#include "gradus/backend/cpu/run/rows_apart.h"
#include "gradus/backend/cpu/run/schedule.h"
#include "gradus/backend/cpu/run/team_choice.h"

namespace gradus {

/// One thunk, ready to run.
struct Job {
  KernelFunction run = nullptr;
  const void* data = nullptr;
  std::int64_t extent = 0, grain = 1;
  std::int64_t thunk = 0;
  double cost = 0;         // nanoseconds on one thread, estimated
  int owner = 0;           // the worker that runs it if it is not divided
  bool controls = false;   // a branch, a loop or work together, and
  int team = 1;            // how many workers run it together
  bool may_fail = false;   // somewhere in its stage: the error word is looked at after the stage's last job
  Cut cut = Cut::nowhere;  // if it is divided: says if others may take over a part of a share, and
  std::int64_t piece = 1;  // the fewest grains that are worth it
  bool in_turns = false;   // if it is divided: members of the team wait for each other within it
  std::int64_t scratch = 0, scratch_stride = 0;  // in the arena: of worker 0, and from one to the next
};

/// Jobs between two barriers. Alone: worker 0 runs them in sequence. Controls: one job, which every worker calls.
/// Otherwise jobs up to `divided` are divided among all workers, and each of the others is its owner's.
struct Section {
  int first = 0, divided = 0, last = 0;
  bool alone = true;
  bool controls = false;
};

/// All jobs of a loop's body in order, by rows of the carries: each member runs them on rows of its own, in an arena of
/// its own, and no barrier is needed. Without jobs there are no such rows, or too few.
struct RowJobs {
  std::vector<Job> jobs;  // their extents are those of one row
  std::int64_t rows = 0;
  std::vector<std::int64_t> first;  // row of each member, and the end
  std::int64_t stride = 0;          // bytes from one member's arena to the next one's
  std::int64_t scratch = 0;         // where in an arena
};

/// Where output k comes from.
struct OutputSource {
  int input = -1;          // it is this input itself
  int earlier = -1;        // it shares the memory of this output
  int slot = -1;           // else: it is written here
  std::int64_t bytes = 0;  // of its own memory
};

struct Binding {
  const CpuProgram* program = nullptr;  // the program that it binds
  std::uint64_t number = 0;             // never given again: identifies it in profiles
  std::vector<std::int64_t> symbols;
  int threads = 1;

  std::vector<std::int64_t> dimensions;
  std::vector<std::shared_ptr<const void>> data;        // kept alive
  std::vector<DataImage (*)(const void* data)> images;  // per thunk: of its data; null: of generated code, or none
  cpu_backend::TileSet tiles;                           // of all thunks, and of the programs within
  std::vector<std::string> failures;                    // per thunk
  std::vector<std::int64_t> moved, flops;               // per thunk: bytes, operations
  std::vector<Job> jobs;
  std::vector<MeasuredJob> measured;  // per thunk, if they are
  std::vector<Section> sections;
  RowJobs by_rows;
  std::vector<MeasuredJob> measured_by_rows;
  Numbered<int> section_of;   // per thunk
  int team = 1;               // how many workers are worth it
  double cost_ns = 0;         // on one thread, estimated
  double gain_ns = 0;         // by the team
  bool is_short = false;      // its team meets so often that fewer may be worth more while some get no core
  bool meets_within = false;  // in branches and loops
  std::shared_ptr<TeamChoice> choice = {};  // if it is small, and for its binding to fewer threads instead
  double side_by_side_ns = 0;               // estimated, that running independent steps together gains
  std::vector<OutputSource> outputs;
  std::vector<Inside> inside;                             // slots that lie where outputs lie
  std::vector<std::pair<int, std::int64_t>> temporaries;  // slots and their offsets in the arena
  std::vector<std::int64_t> bytes;                        // of each of them; 0 if it lies in the memory of another one
  std::vector<int> last_stages;                           // until when that memory is in use
  std::int64_t temporary_bytes = 0;                       // in the arena: values that live between kernels
  std::int64_t arena_bytes = 0;                           // for the whole team
};

/// The data of a thunk for an object file. InvalidArgument that names the op, if it cannot come along there.
DataImage image_of_thunk(const Lowered& lowered, const Binding& binding, std::size_t thunk);

/// True if some team would work on each grain of it together: then it needs its memory for that.
bool may_work_together(const BoundThunk& thunk);

/// How a program begins: with a fork of its own, or within a team that is running.
enum class Start { fork, within };

/// `threads`: their number; `symbols` have been checked; `body`: the loop whose body it is, if any.
std::unique_ptr<Binding> bind(const Graph& graph, const Lowered& lowered, const StagePlan& schedule,
                              std::span<const std::int64_t> symbols, int threads, Start start = Start::fork,
                              const LoopBody* body = nullptr);

}  // namespace gradus
