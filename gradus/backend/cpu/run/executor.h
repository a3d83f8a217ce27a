/// The executor: runs a bound program, with one fork for all of it and a barrier between sections. Branches and loops
/// are run by the whole team.
#pragma once
#include "gradus/backend/cpu/run/binding.h"

namespace gradus {

/// Called by the thread that leads a run, between jobs: those before `job` of the binding are done. It throws nothing.
class JobListener {
 public:
  virtual void done_before(int job) noexcept = 0;

 protected:
  ~JobListener() = default;
};

/// `slots` says where every value lies, `arena` is where the binding's offsets begin. Stops after the stage in which
/// `error` was set. True if the whole team did it.
bool execute(const Binding& binding, void* const* slots, std::byte* arena, ErrorWord& error,
             JobListener* listener = nullptr);

/// execute() within a team that runs already: each member calls it with a table of slots of its own and the same memory
/// behind them. It sees earlier writes; readers of its results have to meet first.
void execute_within(const TeamMember& member, const Binding& binding, void* const* slots, std::byte* arena,
                    ErrorWord& error);

/// Does a member's part of a binding that is divided by rows, in its own arena and with its own scratch.
void execute_rows(const TeamMember& member, const Binding& binding, void* const* slots, std::byte* scratch,
                  ErrorWord& error);

}  // namespace gradus
