/// The carries of a loop: where they lie in an iteration and where they go. They alternate between two places unless
/// the body may write over them.
#pragma once
#include "gradus/backend/cpu/run/construct.h"
#include "gradus/backend/cpu/run/control_images.h"

namespace gradus::construct {

/// A carry while a loop runs.
struct CarryPlan {
  int number = 0;          // among the carries of the op
  std::size_t output = 0;  // among the outputs that are computed
  std::int64_t bytes = 0;
  bool in_place = false;               // the body may write over it
  std::int64_t offsets[2] = {-1, -1};  // of its places in the memory of the loop; -1: not needed
};

/// The common part of loops' bodies.
struct LoopCode {
  Place place;
  std::vector<int> outputs;                      // of the body that are computed
  std::shared_ptr<const CpuProgram> body, last;  // last: of the last iteration, if that is another

  /// True if output k may lie where input i lies.
  bool may_overwrite(std::size_t k, int i) const {
    return body->may_overwrite()[k] == i && (!last || last->may_overwrite()[k] == i);
  }
};

class Carries {
 public:
  Carries() = default;
  /// Results of the op from `first_result` on are last values, those from `first_history` on histories; -1: there are
  /// none.
  Carries(const LoopCode& code, int carries, int first_result, int first_history, Symbols symbols);
  /// The size of the places in the memory of the loop.
  std::int64_t bytes() const { return bytes_; }
  const std::vector<CarryPlan>& plans() const { return plans_; }
  /// -1: there is none.
  int result_slot(const Place& place, const CarryPlan& plan) const {
    return place.results[at(first_result_ + plan.number)];
  }
  int history_slot(const Place& place, const CarryPlan& plan) const {
    return first_history_ < 0 ? -1 : place.results[at(first_history_ + plan.number)];
  }

 private:
  std::int64_t take(std::int64_t bytes);
  std::vector<CarryPlan> plans_;
  int first_result_ = 0, first_history_ = -1;
  std::int64_t bytes_ = 0;
};

/// The same for object files; the operands of carries begin with `first_operand`.
std::vector<object::CarryStep> steps_of(const Carries& carries, const Place& place, int first_operand);

/// The places of the carries in one run of a loop, as one member of the team sees them.
class CarryPlaces {
 public:
  /// `capacity`: elements of a history.
  CarryPlaces(const Carries& carries, const LoopCode& code, int first_operand, const KernelArguments& arguments,
              std::byte* memory, std::int64_t capacity);
  const void* now(std::size_t i) const { return now_[i]; }

  /// Before an iteration whose element is `element`: its place in the history becomes the carry's.
  void enter(std::int64_t element);
  /// Where carry i goes in an iteration, if the next one's element is `next`; -1: there is none, or it is not known.
  void* target(std::size_t i, std::int64_t next) const;
  void moved_to(std::size_t i, const void* place) { now_[i] = place; }

  /// After the last iteration: results to where they are expected, zeros for elements [begin, capacity) of histories.
  void leave(std::int64_t begin);

 private:
  bool copies() const { return member_.worker == 0; }
  const CarryPlan& plan(std::size_t i) const { return carries_.plans()[i]; }
  std::int64_t bytes(std::size_t i) const { return plan(i).bytes; }
  const Carries& carries_;
  const TeamMember& member_;
  const std::int64_t capacity_;
  std::vector<const void*> now_;
  std::vector<void*> home_, spare_, history_;
};

/// Reports a failure in an iteration of `loop`. All members call it.
void fail_in_iteration(const KernelArguments& arguments, const NestedProgram& program, std::byte* memory,
                       std::int64_t iteration, std::string_view loop);

inline std::byte* advanced(void* base, std::int64_t bytes) { return static_cast<std::byte*>(base) + bytes; }
void clear_bytes(void* to, std::int64_t bytes);

}  // namespace gradus::construct
