/// VariableCell: the state of a Variable.
#pragma once
#include <atomic>
#include "gradus/function/variable.h"

namespace gradus {

class LossScale;

/// A mutex of one byte: a step holds one for each variable that it updates in place, thousands in a large model, which
/// are too many for a thread's mutexes to be checked by ThreadSanitizer (64).
class CellLock {
 public:
  void lock() {
    while (held_.exchange(true, std::memory_order_acquire)) held_.wait(true, std::memory_order_relaxed);
  }
  void unlock() {
    held_.store(false, std::memory_order_release);
    held_.notify_one();
  }

 private:
  std::atomic<bool> held_{false};
};

namespace detail::inline rooms {

struct VariableCell : std::enable_shared_from_this<VariableCell> {
  std::string name;
  Spec spec;
  std::atomic<bool> trainable{true};
  bool made_trainable = true;  // a layer that is trained again after it was frozen leaves all others as they were made
  bool is_copy = false;        // of another Variable
  bool is_optimizer_state = false;  // kept per variable: ranks may divide it among themselves
  Aggregation aggregation = Aggregation::none;
  std::shared_ptr<LossScale> loss_scale;  // of the policy that made it; null: none
  std::uint64_t id = 0;                   // never reused: keys caches where addresses could be
  std::atomic<bool> assigning{false};
  std::atomic<bool> abandoned{false};  // its Variable was destroyed; lists may keep it alive
  CellLock guard;                      // guards the members below
  Tensor value;
  Tensor committed;                       // empty, or the value before a pending assignment: a failure returns to it
  std::shared_ptr<VariableCell> mask;     // booleans; null: all elements may differ from 0
  std::atomic<std::uint64_t> mask_id{0};  // that of `mask`, 0: null; to be read without the guard
  Variable handle{std::shared_ptr<VariableCell>()};  // the cell's own: does not keep it alive

  static std::shared_ptr<VariableCell> make(const Tensor& initial, std::string name, VariableOptions options);
  /// The largest id that was given so far.
  static std::uint64_t last_id();
  /// Asks: a trace takes note of it.
  bool is_trainable();
  void set_trainable(bool next);
  /// The value now, outside of any trace.
  Tensor read();
  /// The value here, in a trace or outside, without notifying listeners.
  Tensor value_here();
  /// `x`, of the cell's shape, with zeros where the cell is masked.
  Tensor masked(const Tensor& x);
  std::shared_ptr<VariableCell> mask_cell();
  void set_mask_cell(std::shared_ptr<VariableCell> next);
};

}  // namespace detail::inline rooms

}  // namespace gradus
