#include "bench/machine.h"
#if defined(__x86_64__)
#include <immintrin.h>
#endif
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <algorithm>
#include <atomic>
#include <memory>
#include "bench/measurement.h"
#include "bench/workloads.h"
#include "gradus/backend/cpu/isa.h"
#include "gradus/backend/cpu/rate_kernels.h"
#include "gradus/backend/cpu/tiles/amx.h"
#include "gradus/base/error.h"
#include "gradus/base/thread_pool.h"

namespace gradus::bench {
namespace {

using namespace cpu_backend::rate_kernels;

constexpr int attempts = 6;
constexpr double least_s = 0.4;  // longer than another process keeps a core for itself

/// The most of `work`, in units a second, that all threads do; every thread does work(worker).
template <class Work> double best_rate(double work_of_all, Work work) {
  ThreadPool& pool = ThreadPool::global();
  double best = 0;
  const double began = seconds_now();
  for (int attempt = 0; attempt < attempts || seconds_now() - began < least_s; ++attempt) {
    const double start = seconds_now();
    pool.run(pool.threads(), [&](int worker, int team) { work(worker, team); });
    best = std::max(best, work_of_all / (seconds_now() - start));
  }
  return best;
}

// ---------------------------------------------------------------- arithmetic

constexpr long rounds = 4'000'000, tile_rounds = 400'000;

thread_local volatile float kept;  // so that no result is left out, and none is known before

/// 1e9 operations a second of `work`, which has so many of them.
template <class Work> double arithmetic(Work work, double operations) {
  return best_rate(operations * ThreadPool::global().threads(), [&](int, int) { kept = work(); }) / 1e9;
}
/// The same of a chain of one instruction.
double of_chains(const Chain& chain) {
  return arithmetic([=] { return chain.run(rounds, kept); }, operations_of(rounds, chain.operations));
}

// ---------------------------------------------------------------- memory

/// Two arrays that no cache holds, in large pages where the system has them.
class Arrays {
 public:
  static constexpr std::size_t bytes = std::size_t{256} << 20, floats = bytes / sizeof(float);

  Arrays() {
    void* memory = mmap(nullptr, 2 * bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw ResourceExhausted("gradus_bench limits: no memory for two arrays of 256 MiB");
    madvise(memory, 2 * bytes, MADV_HUGEPAGE);
    memory_ = static_cast<float*>(memory);
    std::fill(memory_, memory_ + 2 * floats, 1.0f);
  }
  Arrays(const Arrays&) = delete;
  ~Arrays() { munmap(memory_, 2 * bytes); }

  float* first() const { return memory_; }
  float* second() const { return memory_ + floats; }

 private:
  float* memory_;
};

#if defined(__x86_64__)
__attribute__((target("avx2"), noinline)) float read_all(const float* from, std::size_t n) {
  __m256 sums[8] = {};
  for (std::size_t i = 0; i < n; i += 64)
    for (int k = 0; k < 8; ++k) sums[k] = _mm256_add_ps(sums[k], _mm256_load_ps(from + i + 8 * k));
  for (int k = 1; k < 8; ++k) sums[0] = _mm256_add_ps(sums[0], sums[k]);
  return _mm256_cvtss_f32(sums[0]);
}
__attribute__((target("avx2"), noinline)) void copy_all(const float* from, float* to, std::size_t n) {
  for (std::size_t i = 0; i < n; i += 8) _mm256_store_ps(to + i, _mm256_load_ps(from + i));
}
__attribute__((target("avx2"), noinline)) void copy_past_caches(const float* from, float* to, std::size_t n) {
  for (std::size_t i = 0; i < n; i += 8) _mm256_stream_ps(to + i, _mm256_load_ps(from + i));
  _mm_sfence();
}
__attribute__((target("avx2"), noinline)) void scale_all(float* x, std::size_t n) {
  const __m256 factor = _mm256_set1_ps(0.999f);
  for (std::size_t i = 0; i < n; i += 8) _mm256_store_ps(x + i, _mm256_mul_ps(_mm256_load_ps(x + i), factor));
}
#else
typedef float Floats __attribute__((vector_size(16)));
[[gnu::noinline]] float read_all(const float* from, std::size_t n) {
  const auto* vectors = reinterpret_cast<const Floats*>(from);
  Floats sums[8] = {};
  for (std::size_t i = 0; i < n / 4; i += 8)
    for (int k = 0; k < 8; ++k) sums[k] += vectors[i + static_cast<std::size_t>(k)];
  for (int k = 1; k < 8; ++k) sums[0] += sums[k];
  return sums[0][0];
}
[[gnu::noinline]] void copy_all(const float* from, float* to, std::size_t n) { std::copy_n(from, n, to); }
/// No instruction for it is used.
[[gnu::noinline]] void copy_past_caches(const float* from, float* to, std::size_t n) { std::copy_n(from, n, to); }
[[gnu::noinline]] void scale_all(float* x, std::size_t n) { scale(x, n, false); }
#endif

void add_memory(Machine& machine) {
  const Arrays arrays;
  const auto rate = [&](int passes, auto work) {  // `passes`: how often each byte of an array is moved
    const auto share = [&](int worker, int team) {
      const std::size_t lines = Arrays::floats / 64;
      const std::size_t begin = lines * worker / team * 64, end = lines * (worker + 1) / team * 64;
      work(arrays.first() + begin, arrays.second() + begin, end - begin);
    };
    return best_rate(static_cast<double>(Arrays::bytes) * passes, share) / 1e9;
  };
  machine.read = rate(1, [](const float* a, float*, std::size_t n) { kept = read_all(a, n); });
  machine.copy = rate(2, [](const float* a, float* b, std::size_t n) { copy_all(a, b, n); });
  machine.copy_past_caches = rate(2, [](const float* a, float* b, std::size_t n) { copy_past_caches(a, b, n); });
  machine.in_place = rate(2, [](float* a, float*, std::size_t n) { scale_all(a, n); });
}

Figures limits() {
  const Machine machine = measure_machine();
  Figures figures;
  figures.extra = {{"gflops", machine.flops},
                   {"bf16_gflops", machine.narrow_flops ? nlohmann::ordered_json(*machine.narrow_flops) : nullptr},
                   {"read_gb_s", machine.read},
                   {"copy_gb_s", machine.copy},
                   {"copy_past_caches_gb_s", machine.copy_past_caches},
                   {"in_place_gb_s", machine.in_place}};
  return figures;
}

/// So many threads that compute until the process is killed, or whoever started it ends: load for others.
Figures busy() {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  ThreadPool& pool = ThreadPool::global();
  pool.run(pool.threads(), [](int, int) {
    for (std::atomic<unsigned> steps = 0;; steps.fetch_add(1, std::memory_order_relaxed)) {}
  });
  return {};
}

}  // namespace

Machine measure_machine() {
  Machine machine;
  const bool is_wide = cpu_backend::widest_isa() == cpu_backend::Isa::avx512;
  machine.flops = of_chains(multiply_adds(is_wide));
  if (cpu_backend::has_pair_products()) machine.narrow_flops = std::max(of_chains(multiply_pairs()), machine.flops);
  if (cpu_backend::uses_amx()) {
    constexpr double in_tiles = static_cast<double>(tile_rounds) * tile_products * tile_operations;
    machine.narrow_flops =
        std::max(arithmetic([] { return multiply_tiles(tile_rounds); }, in_tiles), *machine.narrow_flops);
  }
  add_memory(machine);
  return machine;
}

void add_limits(Workloads& workloads) {
  workloads["limits"] = limits;
  workloads["busy"] = busy;
}

}  // namespace gradus::bench
