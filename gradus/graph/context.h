/// Context: decides what becomes of effects and C++ branches while a thread traces. Contexts nest; without one,
/// everything is concrete and lazy. Here is also what graph/ needs of later rooms, which compute.
#pragma once
#include "gradus/base/rooms.h"
#include "gradus/graph/call_context.h"
#include "gradus/graph/tensor.h"

namespace gradus {

namespace detail::inline rooms {
class ShardContext;
struct VariableCell;

/// By default a context is transparent: reads, assignments and keys are those of the one around it.
class Context {
 public:
  Context();
  virtual ~Context() = default;
  Context(const Context&) = delete;
  std::uint32_t id() const { return id_; }
  /// The value of the cell here; empty if no context has another value of it than the world outside.
  virtual Tensor read(VariableCell& cell);
  virtual void assign(VariableCell& cell, const Tensor& value);
  /// Why no Variable can be assigned here, and what to do instead, to follow its name; empty if it can.
  virtual std::string_view why_no_assignment() const { return {}; }
  /// The key that the call which is traced has for its next random op; empty if it has none.
  virtual Tensor next_key() { return parent() ? parent()->next_key() : Tensor(); }
  /// The key of a random op here, made of the key that all contexts share.
  virtual Tensor random_key(const Tensor& key);
  /// The shards of the batch that a step runs on here; null: there are none.
  virtual ShardContext* shards() { return parent() ? parent()->shards() : nullptr; }
  /// True if this context keeps `by`, to add it to the value of the cell later, or to subtract it.
  virtual bool increase(VariableCell& cell, const Tensor& by, bool decreases) {
    return parent() && parent()->increase(cell, by, decreases);
  }
  /// The choice between two ways of computing the same (ops/size_choice.h): `suggested`, unless a trace knows better.
  virtual bool choose(bool suggested, bool is_of_sizes) {
    return parent() ? parent()->choose(suggested, is_of_sizes) : suggested;
  }
  /// `dimension`, which depends on symbols (a difference, such as s0 - 32), must not be negative in any call;
  /// `otherwise` is how that is put to the user. InvalidArgument unless a trace sees to it.
  virtual void require_not_negative(std::int64_t dimension, const std::string& otherwise);
  /// The C++ program branches on `predicate`, one boolean that depends on symbols of this trace: the value it has.
  /// InvalidArgument unless the context knows a way.
  virtual bool decide(const Tensor& predicate);
  /// Where this trace keeps the node of this application of `op`, to meet it when it runs again: null: nowhere; the
  /// node itself if an earlier run has made it, else empty.
  virtual Ref<Node>* place_of(const AnyOp& op, In inputs);
  /// An op is applied here or in a context within this one.
  virtual void count_application() {
    if (parent()) parent()->count_application();
  }
  /// The tensor that stands for `made`, a constant that the program makes while this trace is the innermost.
  virtual Tensor literal(const Tensor& made);

  /// The innermost context of this thread, or null.
  static Context* current() { return CallContext::here().context; }
  /// True if symbols of trace `id` may be used now.
  static bool is_active(std::uint32_t id) { return id == 0 || find(id); }
  /// The context of this thread with this id, or null.
  static Context* find(std::uint32_t id);

 protected:
  /// A trace that goes on.
  explicit Context(std::uint32_t id);
  static std::uint32_t new_id();
  /// The context around this one, or null.
  Context* parent() const { return scope_.before(); }

 private:
  const std::uint32_t id_;
  const FieldScope<&CallContext::context> scope_{this};
};

}  // namespace detail::inline rooms

/// In its lifetime this thread is outside of all traces: new nodes are concrete, and random ops are none of the call's.
/// For variables that are built in the midst of a traced call.
class Untraced {
 public:
  [[nodiscard]] Untraced() {}

 private:
  const FieldScope<&CallContext::context> no_context_{nullptr};
  const FieldScope<&CallContext::keys> no_keys_{nullptr};
};

/// Computes pending nodes. function/ defines it, which owns the queues and the compiler.
struct LazyEvaluation {
  /// Makes `node` have a value.
  static void observe(Node& node);
  /// A node without symbols was made on this thread.
  static void recorded(const Ref<Node>& node);
  /// A node that waits in a queue is about to be freed.
  static void forget(Node& node);
  /// While more starts than ends were counted on this thread, computed nodes keep their operands: a gradient may be
  /// asked.
  static void start_recording();
  static void stop_recording();
  /// While as many are paused as have started on this thread, what is made has no history. What was recorded keeps its
  /// own.
  static void pause_recording();
  static void resume_recording();
};

/// Keeps the history of what this thread computes in its lifetime.
class RecordingScope {
 public:
  [[nodiscard]] RecordingScope() { LazyEvaluation::start_recording(); }
  ~RecordingScope() { LazyEvaluation::stop_recording(); }
  RecordingScope(const RecordingScope&) = delete;
};

}  // namespace gradus
