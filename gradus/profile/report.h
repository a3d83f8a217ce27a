/// ProfileReport: the parts of the time of some work, and changes that would make it faster.
#pragma once
#include <cstdint>
#include <filesystem>
#include <iosfwd>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace gradus {

/// The subject of a row of a report.
enum class ProfileKind : std::uint8_t {
  kernel,  // ops that are computed together
  layer,   // all kernels of a layer, those of its gradient included
  stage,   // a stage of a dataset
  scope,   // a ProfileScope
};
/// Its name in tables and files: "kernel".
std::string_view name_of(ProfileKind kind);

/// A row of a report.
struct ProfileRow {
  std::string name;        // "matmul+add+relu", "sequential/dense_1", "batch(32)", "step"
  std::int64_t calls = 0;  // runs of a kernel or a layer, elements of a stage, times that a scope was entered
  double seconds = 0;  // of all threads together; a scope's: on the clock; a stage's: of the threads that make elements
  std::size_t bytes = 0;                   // read and written by kernels; of a stage: of its elements
  ProfileKind kind = ProfileKind::kernel;  // its subject
  double flops = 0;                        // operations, as the cost model counts them
  double of_peak = 0;                      // its operations a second, as a share of its threads' peak; 0: not known
  double of_bandwidth = 0;      // its bytes a second, as a share of their peak; above 1 if a cache holds them
  double waiting = 0;           // seconds that other threads waited for it
  double gradient_seconds = 0;  // of a layer: the part of its seconds that its gradient takes
  std::string stage = {};       // of a kernel or layer: the dataset stage for which it ran; empty: none
};

/// A change that would make the work faster.
struct Suggestion {
  /// "input", "prefetch", "parallel map", "cache", "compile", "fixed sizes", "batch size" or "replicas".
  std::string lever;
  std::string reason;       // in words, with its numbers
  double gain_seconds = 0;  // of the work that was profiled, estimated
  std::string remedy = {};  // how to write it, if the reason does not say so; may be empty
};

/// The memory of tensors at a moment, by its holders, in bytes.
struct ProfileMemory {
  double seconds = 0;           // since the work began
  std::size_t weights = 0;      // Variables, except
  std::size_t optimizer = 0;    // those of an optimizer
  std::size_t activations = 0;  // values that a program keeps for gradients
  std::size_t temporaries = 0;  // its other values while it runs
  std::size_t data = 0;         // batches that are ready, and arrays that datasets are made of
  std::size_t others = 0;       // all other live tensors
};

namespace detail::inline rooms {
class ProfileTimeline;
}  // namespace detail::inline rooms

/// Where the time of some work went.
struct ProfileReport {
  double seconds = 0;                   // on the clock: the sum of the five parts that follow
  double compute = 0;                   // programs run
  double input_wait = 0;                // for elements of datasets
  double compile = 0;                   // tracing and compiling
  double communication = 0;             // with other processes
  double host = 0;                      // all else: the program's own C++
  std::size_t peak_bytes = 0;           // of tensors, above those live at the start
  std::vector<ProfileRow> rows;         // kernels, layers, stages and scopes, longest first
  std::vector<Suggestion> suggestions;  // largest gain first; none if no change gains 5 % of the time
  std::vector<ProfileMemory> memory;    // one for each program that ran, in order; at most 200,000
  int threads = 1;                      // that computed
  double waiting = 0;                   // seconds that these threads waited for others
  /// The number of lazy ops that the work recorded and that have not run, since no value that depends on them was read.
  std::int64_t unobserved = 0;
  double peak_flops = 0;      // per second, of one thread of this machine in f32, as measured
  double peak_bandwidth = 0;  // bytes per second of one thread, as measured

  /// Writes Chrome's trace events, for Perfetto and chrome://tracing. Unavailable if it cannot be written; then there
  /// is no file, or the old one.
  void save_trace(const std::filesystem::path& file) const;
  /// Writes an XPlane file in the layout of TensorBoard's profile plugin: plugins/profile/<run>/<host>.xplane.pb in
  /// `directory`, which is created. Unavailable if it cannot be written.
  void save_xplane(const std::filesystem::path& directory) const;
  /// The report as JSON: parts, rows, suggestions.
  std::string to_json() const;
  /// A table of at most 100 columns: the parts, the longest rows of each kind, the suggestions.
  friend std::ostream& operator<<(std::ostream& out, const ProfileReport& report);

  // For the rooms of the library.
  std::shared_ptr<const detail::ProfileTimeline> timeline;
};

}  // namespace gradus
