/// The cache in memory: elements of epoch 0 of the source, each made once, when it is first read.
#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include "gradus/base/rooms.h"
#include "gradus/data/pipeline_changes.h"
#include "gradus/data/rows.h"
#include "gradus/data/stage.h"

namespace gradus {
namespace {

/// Elements of one size lie side by side up to this size, larger ones are tensors of their own, handed out uncopied.
constexpr std::int64_t largest_row = 16 << 10;

/// The kept elements. The reader that finds one missing makes it, while others wait.
class Store {
 public:
  explicit Store(const Stage& source) : source_(source), length_(source.length(0)) {}

  Tensors at(std::int64_t index) {
    require_all({&index, 1});
    if (!side_by_side()) return elements_[static_cast<std::size_t>(index)];
    Tensors element;
    for (const Rows& rows : arrays_) element.push_back(rows.at(index));
    return element;
  }
  /// Only of elements that lie side by side.
  void write(std::span<const std::int64_t> indices, std::span<std::byte* const> out) {
    require_all(indices);
    for (std::size_t field = 0; field < arrays_.size(); ++field) arrays_[field].gather(indices, out[field]);
  }
  bool side_by_side() const {
    return std::ranges::all_of(source_.specs(),
                               [](const Spec& spec) { return !has_any_size(spec) && bytes_of(spec) <= largest_row; });
  }

 private:
  void require_all(std::span<const std::int64_t> indices) {
    if (opened_.load(std::memory_order_acquire) &&
        std::ranges::all_of(indices, [this](std::int64_t i) { return is_made(i); }))
      return;
    std::lock_guard lock(guard_);
    open();
    missing_.clear();
    for (const std::int64_t index : indices)
      if (!is_made(index)) missing_.push_back(index);
    if (side_by_side()) make_rows();
    else
      for (const std::int64_t index : missing_) elements_[static_cast<std::size_t>(index)] = pass_->at(index);
    for (const std::int64_t index : missing_) flag(index).store(true, std::memory_order_release);
  }
  void open() {
    if (pass_) return;
    arrays_.clear();
    if (side_by_side()) {
      for (Spec spec : source_.specs()) {
        spec.shape.insert(0, length_);
        arrays_.emplace_back(Tensor::of_buffer(spec, Buffer::allocate(bytes_of(spec), "cache of a dataset")));
      }
    } else {
      elements_.resize(static_cast<std::size_t>(length_));
    }
    made_ = std::make_unique<std::atomic<bool>[]>(static_cast<std::size_t>(length_));
    pass_ = source_.open(0);
    opened_.store(true, std::memory_order_release);
  }
  /// All that is missing at once: the stages before may make elements in parallel.
  void make_rows() {
    std::vector<Ref<Buffer>> fresh;
    std::vector<std::byte*> out;
    for (const Spec& spec : source_.specs()) {
      fresh.push_back(
          Buffer::allocate(static_cast<std::int64_t>(missing_.size()) * bytes_of(spec), "cache of a dataset"));
      out.push_back(fresh.back()->data<std::byte>());
    }
    pass_->write(missing_, out);
    for (std::size_t field = 0; field < out.size(); ++field) {
      const auto bytes = static_cast<std::size_t>(bytes_of(source_.specs()[field]));
      for (std::size_t i = 0; i < missing_.size(); ++i)
        std::memcpy(arrays_[field].row(missing_[i]), out[field] + i * bytes, bytes);
    }
  }
  bool is_made(std::int64_t index) const { return flag(index).load(std::memory_order_acquire); }
  std::atomic<bool>& flag(std::int64_t index) const { return made_[static_cast<std::size_t>(index)]; }

  const Stage& source_;
  const std::int64_t length_;
  std::atomic<bool> opened_ = false;
  std::unique_ptr<std::atomic<bool>[]> made_;  // set once opened
  std::vector<Rows> arrays_;
  std::vector<Tensors> elements_;

  std::mutex guard_;  // guards the members below, and writes of those above
  std::unique_ptr<Pass> pass_;
  std::vector<std::int64_t> missing_;
};

/// The rows of elements that one rank has asked for: always the same of an element.
class RowStore {
 public:
  explicit RowStore(const Stage& source) : source_(source) {}
  std::optional<std::int64_t> rows_of(std::int64_t index) {
    const std::lock_guard lock(guard_);
    return pass().rows_of(index);
  }
  std::optional<Tensors> at(std::int64_t index, RowRange rows) {
    const std::lock_guard lock(guard_);
    const auto known = kept_.find(index);
    if (known != kept_.end() && known->second.first == rows) return known->second.second;
    std::optional<Tensors> made = pass().rows_at(index, rows);
    if (made) kept_[index] = {rows, *made};
    return made;
  }

 private:
  Pass& pass() {
    if (!pass_) pass_ = source_.open(0);
    return *pass_;
  }
  const Stage& source_;
  std::mutex guard_;  // guards the members below
  std::unique_ptr<Pass> pass_;
  std::map<std::int64_t, std::pair<RowRange, Tensors>> kept_;
};

/// Elements that come in order, as far as they were read.
class Queue {
 public:
  explicit Queue(const Stage& source) : source_(source) {}
  Tensors at(std::int64_t index) {
    std::lock_guard lock(guard_);
    const StopScope::Pause to_the_end;
    if (!pass_ && !ended_) pass_ = source_.open(0);
    while (!ended_ && std::ssize(elements_) <= index) {
      Tensors element = std::ssize(elements_) < source_.length(0) ? pass_->at(std::ssize(elements_)) : Tensors();
      ended_ = element.empty();
      if (!ended_) elements_.push_back(std::move(element));
    }
    if (ended_) pass_.reset();
    return index < std::ssize(elements_) ? elements_[static_cast<std::size_t>(index)] : Tensors();
  }

 private:
  const Stage& source_;
  std::mutex guard_;  // guards the members below
  std::unique_ptr<Pass> pass_;
  std::vector<Tensors> elements_;
  bool ended_ = false;
};

class QueuePass : public Pass {
 public:
  explicit QueuePass(Queue& queue) : queue_(queue) {}
  Tensors at(std::int64_t index) override { return queue_.at(index); }

 private:
  Queue& queue_;
};

class CachePass : public Pass {
 public:
  CachePass(Store& store, RowStore& rows) : store_(store), rows_(rows) {}
  Tensors at(std::int64_t index) override { return store_.at(index); }
  void write(std::span<const std::int64_t> indices, std::span<std::byte* const> out) override {
    if (store_.side_by_side()) store_.write(indices, out);
    else Pass::write(indices, out);
  }
  std::optional<std::int64_t> rows_of(std::int64_t index) override { return rows_.rows_of(index); }
  std::optional<Tensors> rows_at(std::int64_t index, RowRange rows) override { return rows_.at(index, rows); }

 private:
  Store& store_;
  RowStore& rows_;
};

class CacheStage : public DerivedStage {
 public:
  explicit CacheStage(const StagePointer& source)
      : DerivedStage(source), store_(*source), rows_(*source), queue_(*source) {}
  std::string name() const override { return "cache"; }
  bool repeats_itself() const override { return true; }
  /// Elements that another chain reads are not kept here, nor on the disk.
  StagePointer over(const std::vector<StagePointer>& sources, const PipelineChanges& changes) const override {
    return cached(sources[0], changes);
  }
  std::optional<RowLayout> layout(std::int64_t) const override { return source().layout(0); }
  std::int64_t length(std::int64_t) const override { return source().length(0); }
  std::unique_ptr<Pass> make_pass(std::int64_t) const override {
    if (!is_counted()) return std::make_unique<QueuePass>(queue_);
    return std::make_unique<CachePass>(store_, rows_);
  }

 private:
  mutable Store store_;  // of a source that is counted, as is the next one
  mutable RowStore rows_;
  mutable Queue queue_;  // of another one
};

}  // namespace

StagePointer cache_stage(StagePointer source) { return std::make_shared<CacheStage>(source); }

}  // namespace gradus
