/// The part of the library that comes along in object files: it runs a step on one thread. It uses nothing but the
/// given memory, and defines the functions that kernels call in the library. It is no part of the library itself.
/// Decision 293 has the reasons.
#if defined(__x86_64__)
#include <cpuid.h>
#include <xmmintrin.h>
#else
#include <arm_neon.h>
#endif
#include <unistd.h>
#include <cstring>
#include "gradus/backend/cpu/isa.h"
#include "gradus/backend/cpu/object/standalone_runs.h"

extern "C" {
extern const gradus::object::Facts gradus_object_facts;
std::int64_t gradus_object_run(const gradus::object::Step* step, std::byte* state, void* const* arguments);
void gradus_object_init(const gradus::object::Init* init, std::byte* state);
int gradus_object_supported();
[[noreturn]] void gradus_object_fault();
}

namespace gradus {
namespace {

using standalone::Failure;

std::byte* find(const object::Address& address, std::byte* state, std::byte* workspace, void* const* arguments) {
  switch (address.kind) {
    case object::Address::state: return state + address.offset;
    case object::Address::workspace: return workspace + address.offset;
    case object::Address::argument: return static_cast<std::byte*>(arguments[address.offset]);
    default: return static_cast<std::byte*>(const_cast<void*>(address.bytes));  // kernels write to no constant
  }
}

void copy(const object::Table<object::CopyEntry>& table, std::byte* state, std::byte* workspace,
          void* const* arguments) {
  for (std::int64_t i = 0; i < table.count; ++i) {
    const object::CopyEntry& entry = table.entries[i];
    std::memmove(find(entry.to, state, workspace, arguments), find(entry.from, state, workspace, arguments),
                 static_cast<std::size_t>(entry.bytes));
  }
}

constexpr std::uint64_t golden_gamma = 0x9e3779b97f4a7c15;
/// As ops/random_key.cpp has it.
std::uint64_t scrambled(std::uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

void draw_key(const object::Step& step, std::byte* state, std::byte* workspace) {
  std::uint64_t now;
  std::memcpy(&now, state + step.random_state, sizeof now);
  now += golden_gamma;
  std::memcpy(state + step.random_state, &now, sizeof now);
  const std::uint64_t key = scrambled(scrambled(now) + golden_gamma) >> 11;
  std::memcpy(workspace + step.key, &key, sizeof key);
}

#if defined(__x86_64__)
bool has_bits(unsigned word, unsigned bits) { return (word & bits) == bits; }

using FloatState = unsigned;
constexpr FloatState flushing = 0x9FC0;  // as KernelFloats: nearest, no exceptions, subnormals are zero
FloatState float_state() { return _mm_getcsr(); }
void set_float_state(FloatState state) { _mm_setcsr(state); }

float root(float x) { return _mm_cvtss_f32(_mm_sqrt_ss(_mm_set_ss(x))); }
double root(double x) {
  const __m128d wide = _mm_set_sd(x);
  return _mm_cvtsd_f64(_mm_sqrt_sd(wide, wide));
}
#else
using FloatState = std::uint64_t;
constexpr FloatState flushing = std::uint64_t{1} << 24;  // FZ, as KernelFloats
FloatState float_state() {
  FloatState state;
  asm volatile("mrs %0, fpcr" : "=r"(state));
  return state;
}
void set_float_state(FloatState state) { asm volatile("msr fpcr, %0" : : "r"(state) : "memory"); }

float root(float x) { return vgetq_lane_f32(vsqrtq_f32(vdupq_n_f32(x)), 0); }
double root(double x) { return vgetq_lane_f64(vsqrtq_f64(vdupq_n_f64(x)), 0); }
#endif

}  // namespace

void report_failure(const KernelArguments* arguments, std::int64_t index, std::int64_t value) {
  Failure& failure = *reinterpret_cast<Failure*>(arguments->error);
  if (failure.job >= 0 && (failure.job < arguments->thunk || failure.index <= index)) return;
  failure = {arguments->thunk, index, value};
}

/// A step has one thread, so there is no other to meet.
void TeamMember::meet() const {}

bool standalone::run_jobs(const object::Table<object::JobEntry>& jobs, const std::int64_t* dimensions, void** slots,
                          std::byte* memory, Failure& failure) {
  KernelArguments arguments{slots, dimensions, nullptr, nullptr, reinterpret_cast<ErrorWord*>(&failure), 0};
  for (std::int64_t i = 0; i < jobs.count; ++i) {
    const object::JobEntry& job = jobs.entries[i];
    arguments.data = job.data;
    arguments.thunk = i;
    arguments.scratch = memory + job.scratch;
    job.run(&arguments, 0, job.extent);
    if (job.may_fail != 0 && failure.job >= 0) return false;
  }
  return true;
}

namespace cpu_backend {
Isa isa() { return static_cast<Isa>(gradus_object_facts.isa); }
const Processor& processor() { return processor_of(isa()); }
std::int64_t second_level_cache() { return gradus_object_facts.second_level_cache; }
bool has_pair_products() { return gradus_object_facts.pair_products != 0; }
bool prefers_pair_products() { return gradus_object_facts.prefers_pair_products != 0; }
bool prefers_near_panels() { return gradus_object_facts.prefers_near_panels != 0; }
bool uses_amx() { return false; }  // a process has to ask its kernel for it
}  // namespace cpu_backend
}  // namespace gradus

extern "C" {

std::int64_t gradus_object_run(const gradus::object::Step* step, std::byte* state, void* const* arguments) {
  const gradus::FloatState before = gradus::float_state();
  gradus::set_float_state(gradus::flushing);
  const auto begin = reinterpret_cast<std::uintptr_t>(state + step->workspace);
  std::byte* const workspace = state + step->workspace + (64 - begin % 64) % 64;
  auto** const slots = reinterpret_cast<void**>(workspace + step->slot_table);
  for (std::int64_t i = 0; i < step->slots.count; ++i)
    slots[step->slots.entries[i].slot] = gradus::find(step->slots.entries[i].address, state, workspace, arguments);
  std::uint64_t random_state = 0;
  if (step->random_state >= 0) {
    std::memcpy(&random_state, state + step->random_state, sizeof random_state);
    gradus::draw_key(*step, state, workspace);
  }
  gradus::copy(step->before, state, workspace, arguments);
  gradus::Failure failure;
  const bool is_done = gradus::standalone::run_jobs(step->jobs, step->dimensions, slots, workspace, failure);
  const std::int64_t failed = is_done ? 0 : step->jobs.entries[failure.job].failure;
  const std::int64_t told[] = {failed, failed != 0 ? failure.index : 0, failed != 0 ? failure.value : 0};
  std::memcpy(state + step->failure, told, sizeof told);
  if (failed == 0) {
    gradus::copy(step->staged, state, workspace, arguments);
    gradus::copy(step->after, state, workspace, arguments);
  } else if (step->random_state >= 0) {  // as if it had not begun
    std::memcpy(state + step->random_state, &random_state, sizeof random_state);
  }
  gradus::set_float_state(before);
  return failed;
}

void gradus_object_init(const gradus::object::Init* init, std::byte* state) {
  std::memset(state, 0, static_cast<std::size_t>(init->bytes));
  gradus::copy(init->values, state, state, nullptr);
}

#if defined(__x86_64__)
int gradus_object_supported() {
  unsigned eax, ebx, ecx, edx;
  constexpr unsigned fma = 1U << 12, movbe = 1U << 22, xsave = 1U << 27, avx = 1U << 28, f16c = 1U << 29;
  if (__get_cpuid(1, &eax, &ebx, &ecx, &edx) == 0 || !gradus::has_bits(ecx, fma | movbe | xsave | avx | f16c)) return 0;
  unsigned saved, high;
  __asm__("xgetbv" : "=a"(saved), "=d"(high) : "c"(0));
  if (!gradus::has_bits(saved, 0x6)) return 0;
  constexpr unsigned bmi = 1U << 3, avx2 = 1U << 5, bmi2 = 1U << 8, lzcnt = 1U << 5;
  if (__get_cpuid(0x80000001, &eax, &ebx, &ecx, &edx) == 0 || !gradus::has_bits(ecx, lzcnt)) return 0;
  if (__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) == 0 || !gradus::has_bits(ebx, bmi | avx2 | bmi2)) return 0;
  if (gradus::cpu_backend::isa() != gradus::cpu_backend::Isa::avx512) return 1;
  constexpr unsigned f = 1U << 16, dq = 1U << 17, cd = 1U << 28, bw = 1U << 30, vl = 1U << 31;
  if (!gradus::has_bits(saved, 0xe6) || !gradus::has_bits(ebx, f | dq | cd | bw | vl)) return 0;
  if (gradus_object_facts.pair_products == 0) return 1;
  constexpr unsigned bf16 = 1U << 5;
  return __get_cpuid_count(7, 1, &eax, &ebx, &ecx, &edx) != 0 && gradus::has_bits(eax, bf16) ? 1 : 0;
}
#else
/// Every 64-bit ARM has NEON.
int gradus_object_supported() { return 1; }
#endif

/// For impossible cases: kernels were checked when the step was compiled.
void gradus_object_fault() { __builtin_trap(); }

// Functions that the compiled C++ of kernels calls. Statics are computed again each time: they are facts.

int memcmp(const void* a, const void* b, std::size_t count) noexcept {
  const auto *x = static_cast<const unsigned char*>(a), *y = static_cast<const unsigned char*>(b);
  for (std::size_t i = 0; i < count; ++i)
    if (x[i] != y[i]) return x[i] < y[i] ? -1 : 1;
  return 0;
}
int __cxa_guard_acquire(std::int64_t*) { return 1; }
void __cxa_guard_release(std::int64_t*) {}
void __cxa_guard_abort(std::int64_t*) {}
/// Compilers call them for numbers without a root, to set errno.
float sqrtf(float x) noexcept { return gradus::root(x); }
double sqrt(double x) noexcept { return gradus::root(x); }
}
