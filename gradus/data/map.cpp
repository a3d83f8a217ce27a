/// Maps: a compiled function of each element.
#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include "gradus/base/thread_pool.h"
#include "gradus/data/element_work.h"

namespace gradus {
namespace {

class MapPass : public Pass {
 public:
  MapPass(const ElementWork& work, int parallel_calls, const Stage& source, std::int64_t epoch)
      : work_(work),
        parallel_calls_(parallel_calls),
        specs_(source.specs()),
        source_(source.open(epoch)),
        epoch_(epoch) {}

  Tensors at(std::int64_t index) override {
    const Tensors element = source_->at(index);
    return element.empty() ? element : work_.apply(element, epoch_, index);
  }

  void write(std::span<const std::int64_t> indices, std::span<std::byte* const> out) override {
    if (indices.size() > 1 && work_.may_vectorize()) {
      if (write_rows(indices, out)) return;
      write_each(indices, out);  // throws, if an element is to blame
      work_.give_up_rows();
      return;
    }
    write_each(indices, out);
  }

 private:
  bool write_rows(std::span<const std::int64_t> indices, std::span<std::byte* const> out) {
    Tensors stacked;
    std::vector<std::byte*> rows;
    for (Spec spec : specs_) {
      spec.shape.insert(0, std::ssize(indices));
      stacked.push_back(Tensor::of_buffer(spec, Buffer::allocate(bytes_of(spec), "elements of a map")));
      rows.push_back(stacked.back().observed().data<std::byte>());
    }
    source_->write(indices, rows);
    return work_.apply_to_rows(stacked, std::ssize(indices), out);
  }
  /// The first call alone, since it may compile; the others side by side.
  void write_each(std::span<const std::int64_t> indices, std::span<std::byte* const> out) {
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
    const int threads = parallel_calls_ == autotune ? ThreadPool::max_threads : parallel_calls_;
    const std::size_t left = indices.size() - done;
    ThreadPool::global().run(static_cast<int>(std::min(left, static_cast<std::size_t>(threads))), work);
    if (!failures.empty()) std::rethrow_exception(failures.begin()->second);
  }
  void put(std::int64_t index, const Tensors& element, std::size_t place, std::span<std::byte* const> out) const {
    const Tensors results = work_.apply(element, epoch_, index);
    for (std::size_t field = 0; field < out.size(); ++field) {
      const std::size_t bytes = results[field].bytes();
      if (bytes > 0) std::memcpy(out[field] + place * bytes, results[field].observed().data(), bytes);
    }
  }

  const ElementWork& work_;
  const int parallel_calls_;
  const std::vector<Spec>& specs_;  // of the source
  std::unique_ptr<Pass> source_;
  const std::int64_t epoch_;
  bool compiled_ = false;
};

class MapStage : public DerivedStage {
 public:
  MapStage(StagePointer source, std::unique_ptr<ElementWork> work, int parallel_calls)
      : DerivedStage(std::move(source), work->specs()), work_(std::move(work)), parallel_calls_(parallel_calls) {}
  std::string name() const override { return "map"; }
  std::uint64_t identity() const override { return work_->identity(); }
  int parallel_calls() const override { return std::max(source().parallel_calls(), parallel_calls_); }

 protected:
  std::unique_ptr<Pass> make_pass(std::int64_t epoch) const override {
    return std::make_unique<MapPass>(*work_, parallel_calls_, source(), epoch);
  }

 private:
  const std::unique_ptr<const ElementWork> work_;
  const int parallel_calls_;
};

}  // namespace

StagePointer map_stage(StagePointer source, const ElementFunction& trace, ElementFunction run, ElementFunction rows,
                       MapOptions options) {
  auto work = std::make_unique<ElementWork>("map", *source, trace, std::move(run), std::move(rows));
  return std::make_shared<MapStage>(std::move(source), std::move(work), options.num_parallel_calls);
}

}  // namespace gradus
