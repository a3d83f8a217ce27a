/// A graph compiled for the processor: thunks over a table of memory slots. Running it allocates only its outputs and
/// one arena.
#pragma once
#include "gradus/backend/compile_options.h"
#include "gradus/backend/cpu/run/thunk.h"
#include "gradus/backend/executable.h"
#include "gradus/compiler/plan_memory.h"

namespace gradus {

struct Binding;
struct ProfiledProgram;

class CpuProgram final : public Executable {
 public:
  CpuProgram(std::shared_ptr<const Graph> graph, Plan plan, Lowered lowered);
  ~CpuProgram() override;

  void run(std::span<const Ref<Buffer>> inputs, std::span<Ref<Buffer>> outputs,
           const RunContext& context = {}) const override;
  const Graph& graph() const override;
  const std::vector<int>& may_overwrite() const override;
  ExecutableReport report(std::span<const std::int64_t> symbols = {}) const override;
  std::int64_t temporary_bytes(std::span<const std::int64_t> symbols = {}) const override;
  std::size_t footprint() const override;

  // For programs that run this one as a part of them (nested.h).
  /// `symbols` may be more than this graph has. A run within a team forks no other. `carries`, if any: the inputs that
  /// the iterations of a loop hand on, whose rows members of a team may have for themselves.
  std::shared_ptr<const Binding> bound_within(std::span<const std::int64_t> symbols, int threads,
                                              std::vector<int> carries = {}, std::int64_t iterations = 0) const;
  int slots() const;
  /// The program in a profile.
  ProfiledProgram described(const Binding& binding) const;
  const Lowered& lowered() const;
  const std::vector<Step>& steps() const;
  /// The exception that `error`, which is set, stands for.
  std::exception_ptr failure(const Binding& binding, const ErrorWord& error) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

namespace cpu_backend {
struct Processor;
/// The whole compiler (backend/cpu/compile.cpp reads from top to bottom). Thread-safe. ResourceExhausted, naming the
/// smallest that works, if the budget of the options is too small. `target`: the processor that code is made for, of
/// any architecture; null: this process's.
std::shared_ptr<const CpuProgram> compile(Graph graph, const CompileOptions& options = {},
                                          const Processor* target = nullptr);
}  // namespace cpu_backend

}  // namespace gradus
