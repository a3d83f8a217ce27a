/// What NAME_supported() says on lesser processors: the test is the debugger of a child that asks, and takes features
/// out of what the instruction cpuid tells it.
#include <gtest/gtest.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <optional>
#include "gradus/backend/cpu/isa.h"
#include "gradus/ops/elementwise.h"
#include "tests/export/loaded_object.h"

#if defined(__x86_64__)  // the instruction that tells of the processor is of x86
namespace gradus::supported_test {
namespace {

/// A bit of what cpuid tells.
struct Feature {
  const char* name;
  unsigned leaf, subleaf;
  unsigned long long user_regs_struct::* word;
  int bit;
};
constexpr auto a = &user_regs_struct::rax, b = &user_regs_struct::rbx, c = &user_regs_struct::rcx;

constexpr std::array of_avx2{
    Feature{"fma", 1, 0, c, 12}, Feature{"movbe", 1, 0, c, 22}, Feature{"xsave", 1, 0, c, 27},
    Feature{"avx", 1, 0, c, 28}, Feature{"f16c", 1, 0, c, 29},  Feature{"lzcnt", 0x80000001, 0, c, 5},
    Feature{"bmi1", 7, 0, b, 3}, Feature{"avx2", 7, 0, b, 5},   Feature{"bmi2", 7, 0, b, 8}};
constexpr std::array of_avx512{Feature{"avx512f", 7, 0, b, 16}, Feature{"avx512dq", 7, 0, b, 17},
                               Feature{"avx512cd", 7, 0, b, 28}, Feature{"avx512bw", 7, 0, b, 30},
                               Feature{"avx512vl", 7, 0, b, 31}};
constexpr Feature of_pairs{"avx512_bf16", 7, 1, a, 5};

/// What `supported` says in a child whose processor lacks the feature, if any. Empty where no process may be traced.
std::optional<int> answer_without(int (*supported)(), const Feature* missing) {
  constexpr int cannot = 99;
  const pid_t child = fork();
  if (child == 0) {
    if (ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) _exit(cannot);
    raise(SIGSTOP);
    _exit(supported());
  }
  int status = 0;
  for (waitpid(child, &status, 0); WIFSTOPPED(status); waitpid(child, &status, 0)) {
    user_regs_struct before{}, after{};
    ptrace(PTRACE_GETREGS, child, nullptr, &before);
    const bool is_cpuid = (ptrace(PTRACE_PEEKTEXT, child, before.rip, nullptr) & 0xFFFF) == 0xA20F;
    if (ptrace(PTRACE_SINGLESTEP, child, nullptr, nullptr) != 0) {
      kill(child, SIGKILL);
      continue;
    }
    if (!is_cpuid || !missing) continue;
    if (static_cast<unsigned>(before.rax) != missing->leaf) continue;
    if (missing->leaf == 7 && static_cast<unsigned>(before.rcx) != missing->subleaf) continue;
    if (waitpid(child, &status, 0); !WIFSTOPPED(status)) break;
    ptrace(PTRACE_GETREGS, child, nullptr, &after);
    after.*missing->word &= ~(1ULL << missing->bit);
    ptrace(PTRACE_SETREGS, child, nullptr, &after);
    ptrace(PTRACE_SINGLESTEP, child, nullptr, nullptr);
  }
  if (!WIFEXITED(status) || WEXITSTATUS(status) == cannot) return {};
  return WEXITSTATUS(status);
}

TEST(Export, AnObjectSaysWhichProcessorItIsFor) {
  const auto f = function([](Tensor x) { return x + 1; });
  const bool has_avx512 = cpu_backend::widest_isa() == cpu_backend::Isa::avx512;
  for (const char* set : {"avx2", "avx512"}) {
    const bool is_wide = std::string_view(set) == "avx512";
    if (is_wide && !has_avx512) continue;
    SCOPED_TRACE(set);
    const LoadedObject object(f.export_object(export_folder() / "f", {{f32, {2}}}, {.instruction_set = set}));
    const auto supported = object.function<int (*)()>("_supported");
    EXPECT_EQ(supported(), 1);
    if (!answer_without(supported, nullptr)) GTEST_SKIP() << "no process may be traced here";
    EXPECT_EQ(answer_without(supported, nullptr), 1);
    for (const Feature& feature : of_avx2) EXPECT_EQ(answer_without(supported, &feature), 0) << feature.name;
    for (const Feature& feature : of_avx512)
      EXPECT_EQ(answer_without(supported, &feature), is_wide ? 0 : 1) << feature.name;
    const bool needs_pairs = is_wide && cpu_backend::has_pair_products();
    EXPECT_EQ(answer_without(supported, &of_pairs), needs_pairs ? 0 : 1);
  }
}

}  // namespace
}  // namespace gradus::supported_test
#endif
