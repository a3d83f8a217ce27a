/// CallContext: the calls that a thread is within. It is one object of the thread. A scope puts another value into one
/// of its fields, and the old one back at its end. At first the thread is outside of every call.
#pragma once
#include <cstdint>
#include <utility>

namespace gradus {

class KeyValueCache;
enum class CallMode;

namespace detail::inline rooms {

class ActiveCall;
class ActivityLog;
class CallKeys;
class CallScope;
class CallSeed;
class Context;

class OutermostCall;
class ReadListener;
class ShardRun;
class Trace;

struct CallContext {
  Context* context = nullptr;             // the innermost; null: new nodes are concrete
  Trace* trace = nullptr;                 // the innermost, also where the thread is Untraced within it
  CallKeys* keys = nullptr;               // of a call that runs op by op, or of the rows of a trace
  CallSeed* seed = nullptr;               // of calls
  std::uint64_t* random_state = nullptr;  // null: that of the process
  ReadListener* listener = nullptr;       // the innermost
  CallScope* layers = nullptr;            // the outermost call of a layer
  OutermostCall* outermost = nullptr;     // and what it found
  const ActiveCall* active = nullptr;     // the innermost call of a function
  KeyValueCache* cache = nullptr;         // that the layers of this call of a model extend
  ShardRun* shards = nullptr;             // of the batch that programs run on; null: the batch is one shard
  ActivityLog* log = nullptr;             // of the profile that is taken of this thread
  CallMode mode{};
  std::uint32_t scope = 0;  // that ops are recorded in

  /// The context of this thread.
  static CallContext& here();
};

}  // namespace detail::inline rooms

namespace detail {
[[gnu::tls_model("initial-exec"), gnu::visibility("default")]] inline constinit thread_local CallContext call_context;
}
inline detail::CallContext& detail::CallContext::here() { return detail::call_context; }

namespace detail::inline rooms {

/// In its lifetime a field of the thread's CallContext is `value`: FieldScope<&CallContext::mode>.
template <auto field> class FieldScope {
  using Value = std::remove_reference_t<decltype(CallContext::here().*field)>;

 public:
  [[nodiscard]] explicit FieldScope(Value value) : before_(std::exchange(CallContext::here().*field, value)) {}
  ~FieldScope() { CallContext::here().*field = before_; }
  FieldScope(const FieldScope&) = delete;
  Value before() const { return before_; }

 private:
  const Value before_;
};

/// In its lifetime the thread is outside of every call. Only how deep it is in calls, and its profile, are known still.
class OutsideOfCalls {
 public:
  [[nodiscard]] OutsideOfCalls()
      : around_(std::exchange(CallContext::here(),
                              {.active = CallContext::here().active, .log = CallContext::here().log})) {}
  ~OutsideOfCalls() { CallContext::here() = around_; }
  OutsideOfCalls(const OutsideOfCalls&) = delete;

 private:
  const CallContext around_;
};

}  // namespace detail::inline rooms

}  // namespace gradus
