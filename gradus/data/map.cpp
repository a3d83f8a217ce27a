/// Maps: a compiled function of each element.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>
#include <mutex>
#include <numeric>
#include "gradus/base/thread_pool.h"
#include "gradus/data/element_work.h"
#include "gradus/data/pipeline_changes.h"
#include "gradus/data/stage_team.h"

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
    if (may_be_batches_ && work_.may_choose() && !work_.is_random()) {
      const std::optional<ChosenRows> rows = source_->chosen({&index, 1});
      may_be_batches_ = !rows || rows->is_batch;
      if (rows && rows->is_batch)
        if (std::optional<Tensors> made = work_.apply_to_chosen(*rows, epoch_, {})) return std::move(*made);
    }
    const Tensors element = source_->at(index);
    return element.empty() ? element : work_.apply(element, epoch_, index);
  }

  void write(std::span<const std::int64_t> indices, std::span<std::byte* const> out) override {
    if (!may_vectorize(std::ssize(indices))) return write_each(indices, elements_at(indices), out);
    copy_fields(stack(work_.specs(), indices), out);
  }
  std::int64_t write_from(std::int64_t first, std::int64_t count, std::span<std::byte* const> out) override {
    if (!may_vectorize_from(count)) return Pass::write_from(first, count, out);
    const Tensors fields = stack_from(work_.specs(), first, count);
    copy_fields(fields, out);
    return fields.empty() ? 0 : fields[0].shape()[0];
  }
  Tensors stack(const std::vector<Spec>& specs, std::span<const std::int64_t> indices) override {
    if (!may_vectorize(std::ssize(indices))) return Pass::stack(specs, indices);
    if (work_.may_choose())
      if (const std::optional<ChosenRows> rows = source_->chosen(indices); rows && !rows->is_batch)
        if (std::optional<Tensors> made = work_.apply_to_chosen(*rows, epoch_, indices)) return std::move(*made);
    return stack_rows(source_->stack(specs_, indices), indices);
  }
  Tensors stack_from(const std::vector<Spec>& specs, std::int64_t first, std::int64_t count) override {
    if (!may_vectorize_from(count)) return Pass::stack_from(specs, first, count);
    const Tensors given = source_->stack_from(specs_, first, count);
    if (given.empty()) return {};
    std::vector<std::int64_t> indices(static_cast<std::size_t>(given[0].shape()[0]));
    std::iota(indices.begin(), indices.end(), first);
    return stack_rows(given, indices);
  }

  std::optional<std::int64_t> rows_of(std::int64_t index) override {
    return work_.is_random() ? std::nullopt : source_->rows_of(index);
  }
  /// Where the function makes a row of its results of the same row of the element alone.
  std::optional<Tensors> rows_at(std::int64_t index, RowRange rows) override {
    if (!work_.keeps_rows_apart(specs_, source_->rows_of(index).value(), rows.count())) return {};
    if (work_.may_choose())
      if (const std::optional<ChosenRows> chosen = source_->chosen_rows(index, rows))
        if (std::optional<Tensors> made = work_.apply_to_chosen(*chosen, epoch_, {})) return made;
    const std::optional<Tensors> given = source_->rows_at(index, rows);
    if (!given) return {};
    return work_.apply(*given, epoch_, index);
  }

 private:
  bool may_vectorize(std::int64_t count) const { return count > 1 && known_ && work_.may_vectorize(); }
  bool may_vectorize_from(std::int64_t count) const { return may_vectorize(count) && count <= most_set_aside(specs_); }
  std::vector<Tensors> elements_at(std::span<const std::int64_t> indices) const {
    std::vector<Tensors> elements;
    for (const std::int64_t index : indices) elements.push_back(source_->at(index));
    return elements;
  }
  /// A copy of element `i` of contiguous ones.
  Tensors element_of(const Tensors& given, std::size_t i) const {
    Tensors one;
    for (std::size_t field = 0; field < specs_.size(); ++field) {
      const auto bytes = static_cast<std::size_t>(bytes_of(specs_[field]));
      Ref<Buffer> copy = Buffer::allocate(bytes_of(specs_[field]), "element of a map");
      if (bytes > 0) std::memcpy(copy->data(), given[field].host<std::byte>() + i * bytes, bytes);
      one.push_back(Tensor::of_buffer(specs_[field], std::move(copy)));
    }
    return one;
  }
  static void copy_fields(const Tensors& fields, std::span<std::byte* const> out) {
    for (std::size_t field = 0; field < fields.size(); ++field)
      if (const std::size_t bytes = fields[field].bytes(); bytes > 0)
        std::memcpy(out[field], fields[field].host(), bytes);
  }
  /// All at once; if that cannot be done one by one, which names the element that is to blame, if one is.
  Tensors stack_rows(const Tensors& given, std::span<const std::int64_t> indices) {
    if (std::optional<Tensors> made = work_.apply_to_rows(given, epoch_, indices)) return std::move(*made);
    std::vector<Tensors> elements;
    for (std::size_t i = 0; i < indices.size(); ++i) elements.push_back(element_of(given, i));
    const Stacked each(work_.specs(), std::ssize(indices));
    write_each(indices, elements, each.rows);
    work_.give_up_rows();
    return each.fields;
  }
  /// The first call alone, since it may compile; the others side by side.
  void write_each(std::span<const std::int64_t> indices, const std::vector<Tensors>& elements,
                  std::span<std::byte* const> out) {
    std::size_t done = 0;
    if (!compiled_ && !indices.empty()) put(indices[0], elements[0], done++, out);
    compiled_ = true;
    std::mutex guard;
    std::map<std::size_t, std::exception_ptr> failures;  // by place, so that the one thrown does not depend on threads
    const int threads = parallel_calls_ == autotune ? ThreadPool::max_threads : parallel_calls_;
    const std::size_t left = indices.size() - done;
    std::atomic<std::size_t> next = done;
    const auto work = [&](int, int workers) {
      const std::size_t piece = std::max<std::size_t>(1, left / (8 * static_cast<std::size_t>(workers)));
      for (std::size_t begin; (begin = next.fetch_add(piece)) < indices.size();)
        for (std::size_t i = begin; i < std::min(begin + piece, indices.size()); ++i) try {
            put(indices[i], elements[i], i, out);
          } catch (...) {
            std::lock_guard lock(guard);
            failures.emplace(i, std::current_exception());
            next = indices.size();
            return;
          }
    };
    run_stage_team(static_cast<int>(std::min(left, static_cast<std::size_t>(threads))), work);
    if (!failures.empty()) std::rethrow_exception(failures.begin()->second);
  }
  void put(std::int64_t index, const Tensors& element, std::size_t place, std::span<std::byte* const> out) const {
    const Tensors results = work_.apply(element, epoch_, index);
    for (std::size_t field = 0; field < out.size(); ++field) {
      const std::size_t bytes = results[field].bytes();
      if (bytes > 0) std::memcpy(out[field] + place * bytes, results[field].host(), bytes);
    }
  }

  const ElementWork& work_;
  const int parallel_calls_;
  const std::vector<Spec>& specs_;  // of the source
  const bool known_;                // are their sizes
  std::unique_ptr<Pass> source_;
  const std::int64_t epoch_;
  bool compiled_ = false, may_be_batches_ = true;
};

class MapStage : public DerivedStage {
 public:
  MapStage(StagePointer source, std::shared_ptr<const ElementWork> work, int parallel_calls)
      : DerivedStage(std::move(source), work->specs()), work_(std::move(work)), parallel_calls_(parallel_calls) {}
  std::string name() const override { return "map"; }
  /// A map that gives each field one dimension more may have made a batch, of one example for instance.
  std::optional<int> batchings() const override {
    const std::vector<Spec>& before = source().specs();
    const bool grows = before.size() == specs().size() && std::ranges::equal(before, specs(), [](auto& a, auto& b) {
                         return a.shape.rank() < b.shape.rank();
                       });
    return grows ? std::nullopt : source().batchings();
  }
  std::uint64_t identity() const override { return work_->identity(); }
  std::string_view remedy() const override {
    return "its function, what it captures and its seed (set_seed) have to be the same on every rank";
  }
  int parallel_calls() const override { return std::max(source().parallel_calls(), parallel_calls_); }
  bool repeats_itself() const override { return !work_->is_random() && source().repeats_itself(); }
  StagePointer over(const std::vector<StagePointer>& sources, const PipelineChanges& changes) const override {
    return std::make_shared<MapStage>(sources[0], work_of(work_, source(), *sources[0]),
                                      changes.parallel_calls.value_or(parallel_calls_));
  }

 protected:
  std::unique_ptr<Pass> make_pass(std::int64_t epoch) const override {
    return std::make_unique<MapPass>(*work_, parallel_calls_, source(), epoch);
  }

 private:
  const std::shared_ptr<const ElementWork> work_;
  const int parallel_calls_;
};

}  // namespace

StagePointer map_stage(StagePointer source, const ElementFunction& trace, ElementFunction run, MapOptions options) {
  auto work = std::make_unique<ElementWork>("map", *source, trace, std::move(run));
  return std::make_shared<MapStage>(std::move(source), std::move(work), options.num_parallel_calls);
}

}  // namespace gradus
