/// Maps: a compiled function of each element. What comes out is learnt by tracing it once with symbols.
#include <algorithm>
#include <cstring>
#include <future>
#include <map>
#include <mutex>
#include "gradus/base/thread_pool.h"
#include "gradus/data/rethrow.h"
#include "gradus/data/stage.h"
#include "gradus/function/call_keys.h"
#include "gradus/function/mode.h"
#include "gradus/function/pending.h"
#include "gradus/function/trace.h"
#include "gradus/ops/random_key.h"

namespace gradus {
namespace {

struct Traced {
  std::vector<Spec> specs;
  bool is_random;
};

Traced trace_with(const std::vector<Spec>& arguments, const ElementFunction& f) {
  Trace trace(arguments);
  if (std::ranges::any_of(arguments, [](const Spec& spec) { return spec.shape.is_symbolic(); }))
    trace.set_limit(Trace::most_of_open_sizes);
  Traced traced{{}, false};
  for (const Tensor& result : f(trace.parameters())) {
    Spec spec = result.spec();
    for (int axis = 0; axis < spec.shape.rank(); ++axis)
      if (dimension::is_symbolic(spec.shape[axis])) spec.shape.set(axis, any_size);
    traced.specs.push_back(spec);
  }
  for (const auto& cell : trace.cells())
    require(!cell->assigned, "map: its function assigns variable ", cell->cell->name,
            "; a map may read variables, but elements are made in any order and more than once");
  traced.is_random = trace.is_random();
  return traced;
}

/// Sizes that are not known at one axis are taken to be one: they come from one batch.
std::vector<Spec> with_symbols(std::vector<Spec> specs) {
  for (Spec& spec : specs)
    for (int axis = 0; axis < spec.shape.rank(); ++axis)
      if (spec.shape[axis] == any_size) spec.shape.set(axis, dimension::symbol(axis));
  return specs;
}

/// A function that must know the sizes is traced with those of the first element.
Traced trace_map(const Stage& source, const ElementFunction& f) {
  try {
    return trace_with(with_symbols(source.specs()), f);
  } catch (const InternalError&) { throw; } catch (const std::exception&) {
    if (!have_any_size(source.specs()) || source.length(0) == 0) throw;
  }
  std::vector<Spec> specs;
  for (const Tensor& field : source.open(0)->at(0)) specs.push_back(field.spec());
  return trace_with(specs, f);
}

/// The value without its history.
Tensor settled(const Tensor& result) {
  Ref<Buffer> value(&result.observed());
  return Tensor::of_buffer(result.spec(), std::move(value));
}

bool fits(const Spec& given, const Spec& expected) {
  if (given.dtype != expected.dtype || given.shape.rank() != expected.shape.rank()) return false;
  return std::equal(given.shape.begin(), given.shape.end(), expected.shape.begin(),
                    [](std::int64_t g, std::int64_t e) { return e == any_size || g == e; });
}

struct MapWork {
  ElementFunction f;
  std::vector<Spec> specs;
  int parallel_calls;
  std::optional<std::uint64_t> seed;  // where random ops are used

  Tensors apply(In element, std::int64_t epoch, std::int64_t index) const {
    // Where this thread records or traces, the call would become part of that.
    if (Context::current() || Pending::mine().is_recording())
      return std::async(std::launch::async, [&] { return apply_here(element, epoch, index); }).get();
    return apply_here(element, epoch, index);
  }

 private:
  Tensors apply_here(In element, std::int64_t epoch, std::int64_t index) const {
    try {
      const ModeScope mode(CallMode::unsaid);
      std::optional<CallSeed> keys;
      if (seed) keys.emplace(mix(mix(*seed, static_cast<std::uint64_t>(epoch)), static_cast<std::uint64_t>(index)));
      Tensors results = f(element);
      for (std::size_t field = 0; field < results.size(); ++field) {
        results[field] = settled(results[field]);
        require(fits(results[field].spec(), specs[field]), "field ", field, " is ", results[field].spec(),
                ", that of other elements ", specs[field], "; give results of one size and type");
      }
      return results;
    } catch (...) { rethrow_in(text("map, element ", index, " of epoch ", epoch)); }
  }
};

class MapPass : public Pass {
 public:
  MapPass(const MapWork& work, std::unique_ptr<Pass> source, std::int64_t epoch)
      : work_(work), source_(std::move(source)), epoch_(epoch) {}

  Tensors at(std::int64_t index) override { return work_.apply(source_->at(index), epoch_, index); }

  /// The first call alone, since it may compile; the others side by side.
  void write(std::span<const std::int64_t> indices, std::span<std::byte* const> out) override {
    std::vector<Tensors> elements;
    for (const std::int64_t index : indices) elements.push_back(source_->at(index));
    std::size_t done = 0;
    if (!compiled_ && !indices.empty()) put(indices[0], elements[0], done++, out);
    compiled_ = true;
    std::mutex guard;
    std::map<std::size_t, std::exception_ptr> failures;  // by place, so that which is told does not depend on threads
    const auto work = [&](int worker, int workers) {
      const auto part = [&](int w) {
        return done + (indices.size() - done) * static_cast<std::size_t>(w) / static_cast<std::size_t>(workers);
      };
      for (std::size_t i = part(worker); i < part(worker + 1); ++i) try {
          put(indices[i], elements[i], i, out);
        } catch (...) {
          std::lock_guard lock(guard);
          failures.emplace(i, std::current_exception());
          return;
        }
    };
    const int threads = work_.parallel_calls == autotune ? ThreadPool::max_threads : work_.parallel_calls;
    const std::size_t left = indices.size() - done;
    ThreadPool::global().run(static_cast<int>(std::min(left, static_cast<std::size_t>(threads))), work);
    if (!failures.empty()) std::rethrow_exception(failures.begin()->second);
  }

 private:
  void put(std::int64_t index, const Tensors& element, std::size_t place, std::span<std::byte* const> out) const {
    const Tensors results = work_.apply(element, epoch_, index);
    for (std::size_t field = 0; field < out.size(); ++field) {
      const std::size_t bytes = results[field].bytes();
      if (bytes > 0) std::memcpy(out[field] + place * bytes, results[field].observed().data(), bytes);
    }
  }

  const MapWork& work_;
  std::unique_ptr<Pass> source_;
  const std::int64_t epoch_;
  bool compiled_ = false;
};

class MapStage : public DerivedStage {
 public:
  MapStage(StagePointer source, MapWork work) : DerivedStage(std::move(source), work.specs), work_(std::move(work)) {}
  int parallel_calls() const override { return std::max(source().parallel_calls(), work_.parallel_calls); }
  std::unique_ptr<Pass> open(std::int64_t epoch) const override {
    return std::make_unique<MapPass>(work_, source().open(epoch), epoch);
  }

 private:
  const MapWork work_;
};

}  // namespace

StagePointer map_stage(StagePointer source, const ElementFunction& trace, ElementFunction run, MapOptions options) {
  Traced traced = trace_map(*source, trace);
  MapWork work{std::move(run), std::move(traced.specs), options.num_parallel_calls, {}};
  if (traced.is_random) work.seed = next_seed();
  return std::make_shared<MapStage>(std::move(source), std::move(work));
}

}  // namespace gradus
