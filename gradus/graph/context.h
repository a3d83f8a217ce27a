/// Context: what this thread does with effects and C++ branches while it traces. Contexts nest; without one, everything
/// is concrete and lazy. Also the hooks by which graph/ reaches the rooms below that compute.
#pragma once
#include "gradus/graph/tensor.h"

namespace gradus {

struct VariableCell;

class Context {
 public:
  Context();
  virtual ~Context();
  Context(const Context&) = delete;
  std::uint32_t id() const { return id_; }
  virtual Tensor read(VariableCell& cell) = 0;
  virtual void assign(VariableCell& cell, const Tensor& value) = 0;

  /// The innermost context of this thread, or null.
  static Context* current();
  /// Whether symbols of trace `id` may be used now.
  static bool is_active(std::uint32_t id);

 protected:
  Context* const parent_;

 private:
  const std::uint32_t id_;
};

/// In its lifetime this thread is outside of all traces: what is made is concrete. For variables that are built in the
/// midst of a traced call.
class Untraced {
 public:
  [[nodiscard]] Untraced();
  ~Untraced();
  Untraced(const Untraced&) = delete;
  static bool is_active();

 private:
  Context* suspended_;
};

/// What computes pending nodes; installed by function/, which owns the queues and the compiler.
struct Evaluation {
  /// Makes `node` have a value.
  static void (*observe)(Node& node);
  /// A node without symbols was made on this thread.
  static void (*recorded)(const Ref<Node>& node);
  /// A node that waits in a queue is about to be freed.
  static void (*forget)(Node& node);
  /// While more starts than ends were counted on this thread, computed nodes keep their operands: a gradient may be
  /// asked.
  static void (*start_recording)();
  static void (*stop_recording)();
};

/// Keeps the history of what this thread computes in its lifetime.
class RecordingScope {
 public:
  [[nodiscard]] RecordingScope() { Evaluation::start_recording(); }
  ~RecordingScope() { Evaluation::stop_recording(); }
  RecordingScope(const RecordingScope&) = delete;
};

}  // namespace gradus
