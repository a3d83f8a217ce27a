/// Variant: one compiled signature of a function: the tree of its segments, and the state for tracing it again.
#pragma once
#include <mutex>
#include "gradus/base/rooms.h"
#include "gradus/function/recording.h"
#include "gradus/function/segment.h"
#include "gradus/function/signature.h"

namespace gradus {

/// The record of a trace with symbols: traces at further sizes are compared with it.
struct OpenTrace {
  Recording recording;
  std::vector<Trace::Bound> bounds;
};

struct Variant {
  /// Past them a ResourceExhausted names the ops that are made for it.
  static constexpr int most_paths = 64;
  static constexpr std::size_t most_guards = 128;  // on one path

  Signature example, pattern;
  WatchedState watched;                         // other state that it holds for; guarded by the function
  std::atomic<std::uint64_t> watched_until{0};  // changes_of_setups() up to which that is known
  std::unique_ptr<Segment> root;
  std::atomic<int> paths{1};
  std::atomic<std::uint64_t> last_use{0};
  Trace::Choices choices;                    // of the library by sizes, for another path
  std::unique_ptr<const OpenTrace> open;     // of a pattern with symbols; else null
  SizesSeen unfit;                           // sizes of calls at which the C++ is another program
  std::atomic<std::size_t> memory_bytes{0};  // the cost in a cache of keeping it for another trace

  std::recursive_mutex tracing;         // guards the members below: one thread adds a path at a time
  std::shared_ptr<TraceMemory> memory;  // empty: without guards, so that it is never traced again
  bool is_being_traced = false;
};

/// The bytes that a variant takes in a cache.
std::size_t footprint(const Variant& variant);

/// Adds a variant's part to explain(): kernels, graph, bytes.
void describe(const Variant& variant, Explanation& explanation);

}  // namespace gradus
