/// Maps: a compiled function of each element.
#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <numeric>
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
        known_(!have_any_size(specs_)),
        source_(source.open(epoch)),
        epoch_(epoch) {}

  Tensors at(std::int64_t index) override {
    const Tensors element = source_->at(index);
    return element.empty() ? element : work_.apply(element, epoch_, index);
  }

  void write(std::span<const std::int64_t> indices, std::span<std::byte* const> out) override {
    if (!may_vectorize(std::ssize(indices))) {
      std::vector<Tensors> elements;
      for (const std::int64_t index : indices) elements.push_back(source_->at(index));
      return write_each(indices, elements, out);
    }
    const Stacked stacked(specs_, std::ssize(indices));
    source_->write(indices, stacked.rows);
    write_rows(stacked, indices, out);
  }
  std::int64_t write_from(std::int64_t first, std::int64_t count, std::span<std::byte* const> out) override {
    if (!may_vectorize(count) || count > most_set_aside(specs_)) return Pass::write_from(first, count, out);
    Stacked stacked(specs_, count);
    const std::int64_t made = source_->write_from(first, count, stacked.rows);
    std::vector<std::int64_t> indices(static_cast<std::size_t>(made));
    std::iota(indices.begin(), indices.end(), first);
    if (made > 0) write_rows(made == count ? stacked : stacked.part(0, made), indices, out);
    return made;
  }

 private:
  /// Elements of the source, one behind the other.
  struct Stacked {
    const std::vector<Spec>& specs;  // of one
    Tensors fields;
    std::vector<std::byte*> rows;

    Stacked(const std::vector<Spec>& of_one, std::int64_t count) : specs(of_one) {
      for (Spec spec : specs) {
        spec.shape.insert(0, count);
        fields.push_back(Tensor::of_buffer(spec, Buffer::allocate(bytes_of(spec), "elements of a map")));
        rows.push_back(fields.back().observed().data<std::byte>());
      }
    }
    /// A copy of some.
    Stacked part(std::int64_t begin, std::int64_t count) const {
      Stacked copy(specs, count);
      for (std::size_t field = 0; field < specs.size(); ++field)
        if (const std::size_t bytes = copy.fields[field].bytes(); bytes > 0)
          std::memcpy(copy.rows[field], rows[field] + begin * bytes_of(specs[field]), bytes);
      return copy;
    }
    Tensors element(std::int64_t i) const {
      Tensors one;
      const Stacked copy = part(i, 1);
      for (std::size_t field = 0; field < specs.size(); ++field)
        one.push_back(Tensor::of_buffer(specs[field], Ref<Buffer>(&copy.fields[field].observed())));
      return one;
    }
  };

  bool may_vectorize(std::int64_t count) const { return count > 1 && known_ && work_.may_vectorize(); }
  /// All at once; if that cannot be done one by one, which names the element that is to blame, if one is.
  void write_rows(const Stacked& stacked, std::span<const std::int64_t> indices, std::span<std::byte* const> out) {
    if (work_.apply_to_rows(stacked.fields, epoch_, indices, out)) return;
    std::vector<Tensors> elements;
    for (std::int64_t i = 0; i < std::ssize(indices); ++i) elements.push_back(stacked.element(i));
    write_each(indices, elements, out);
    work_.give_up_rows();
  }
  /// The first call alone, since it may compile; the others side by side.
  void write_each(std::span<const std::int64_t> indices, const std::vector<Tensors>& elements,
                  std::span<std::byte* const> out) {
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
  const bool known_;                // are their sizes
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

StagePointer map_stage(StagePointer source, const ElementFunction& trace, ElementFunction run, MapOptions options) {
  auto work = std::make_unique<ElementWork>("map", *source, trace, std::move(run));
  return std::make_shared<MapStage>(std::move(source), std::move(work), options.num_parallel_calls);
}

}  // namespace gradus
