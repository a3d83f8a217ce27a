/// Reading without translation, and the stages that only select: windows, repetitions, starts.
#include "gradus/data/stage.h"
#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>
#include "gradus/base/activity_log.h"
#include "gradus/base/error.h"
#include "gradus/base/hash.h"
#include "gradus/base/rooms.h"
#include "gradus/data/pipeline_changes.h"
#include "gradus/graph/call_context.h"

namespace gradus {

bool has_any_size(const Spec& spec) { return std::ranges::count(spec.shape, any_size) > 0; }
bool have_any_size(const std::vector<Spec>& specs) { return std::ranges::any_of(specs, has_any_size); }
bool widen_sizes(Shape& shape, const Shape& other) {
  bool changed = false;
  for (int axis = 0; axis < std::min(shape.rank(), other.rank()); ++axis)
    if (shape[axis] != any_size && shape[axis] != other[axis]) {
      shape.set(axis, any_size);
      changed = true;
    }
  return changed;
}

std::int64_t most_set_aside(const std::vector<Spec>& specs) {
  constexpr std::int64_t most_bytes = std::int64_t{64} << 20;
  std::int64_t bytes = 1;
  for (const Spec& spec : specs) bytes += bytes_of(spec);
  return most_bytes / bytes;
}

namespace {

/// As element number `place` of contiguous ones.
void copy_to(std::span<std::byte* const> out, std::size_t place, const Tensors& element) {
  for (std::size_t field = 0; field < out.size(); ++field) {
    const std::size_t bytes = element[field].bytes();
    if (bytes > 0) std::memcpy(out[field] + place * bytes, element[field].host(), bytes);
  }
}

}  // namespace

void Pass::write(std::span<const std::int64_t> indices, std::span<std::byte* const> out) {
  for (std::size_t i = 0; i < indices.size(); ++i) copy_to(out, i, at(indices[i]));
}

std::int64_t Pass::write_from(std::int64_t first, std::int64_t count, std::span<std::byte* const> out) {
  for (std::int64_t i = 0; i < count; ++i) {
    const Tensors element = at(first + i);
    if (element.empty()) return i;
    copy_to(out, static_cast<std::size_t>(i), element);
  }
  return count;
}

Stacked::Stacked(const std::vector<Spec>& specs, std::int64_t count) {
  for (Spec spec : specs) {
    spec.shape.insert(0, count);
    Ref<Buffer> buffer = Buffer::allocate(bytes_of(spec), "batch");
    rows.push_back(buffer->data<std::byte>());
    fields.push_back(Tensor::of_buffer(spec, std::move(buffer)));
  }
}

Tensors Pass::stack(const std::vector<Spec>& specs, std::span<const std::int64_t> indices) {
  const Stacked all(specs, std::ssize(indices));
  write(indices, all.rows);
  return all.fields;
}

Tensors Pass::stack_from(const std::vector<Spec>& specs, std::int64_t first, std::int64_t count) {
  const Stacked all(specs, count);
  const std::int64_t made = write_from(first, count, all.rows);
  if (made == 0) return {};
  if (made == count) return all.fields;
  const Stacked fewer(specs, made);
  for (std::size_t field = 0; field < specs.size(); ++field)
    if (const auto bytes = fewer.fields[field].bytes(); bytes > 0)
      std::memcpy(fewer.rows[field], all.rows[field], bytes);
  return fewer.fields;
}

namespace {

thread_local const std::atomic<bool>* stop_wanted = nullptr;

using Clock = std::chrono::steady_clock;

std::int64_t bytes_of_all(const Tensors& fields) {
  std::int64_t bytes = 0;
  for (const Tensor& field : fields) bytes += static_cast<std::int64_t>(field.bytes());
  return bytes;
}

/// Counts the times of a pass, for its stage and for the profile of the thread, if one is taken.
class TimedPass : public Pass {
 public:
  TimedPass(std::unique_ptr<Pass> pass, const Stage& stage) : pass_(std::move(pass)), stage_(stage) {
    for (const Spec& spec : stage.specs()) bytes_of_element_ += has_any_size(spec) ? 0 : bytes_of(spec);
  }
  Tensors at(std::int64_t index) override {
    Stopwatch watch(*this, 1);
    Tensors element = pass_->at(index);
    watch.made(element);
    return element;
  }
  void write(std::span<const std::int64_t> indices, std::span<std::byte* const> out) override {
    const Stopwatch watch(*this, static_cast<std::int64_t>(indices.size()));
    pass_->write(indices, out);
  }
  std::int64_t write_from(std::int64_t first, std::int64_t count, std::span<std::byte* const> out) override {
    Stopwatch watch(*this, 0);
    return watch.elements = pass_->write_from(first, count, out);
  }
  Tensors stack(const std::vector<Spec>& specs, std::span<const std::int64_t> indices) override {
    Stopwatch watch(*this, std::ssize(indices));
    Tensors fields = pass_->stack(specs, indices);
    watch.made(fields);
    return fields;
  }
  std::optional<ChosenRows> chosen(std::span<const std::int64_t> indices) override {
    Stopwatch watch(*this, 0);
    std::optional<ChosenRows> rows = pass_->chosen(indices);
    if (rows) watch.elements = std::ssize(indices);
    return rows;
  }
  Tensors stack_from(const std::vector<Spec>& specs, std::int64_t first, std::int64_t count) override {
    Stopwatch watch(*this, 0);
    Tensors fields = pass_->stack_from(specs, first, count);
    if (!fields.empty()) watch.elements = fields[0].shape()[0];
    watch.made(fields);
    return fields;
  }
  std::optional<std::int64_t> rows_of(std::int64_t index) override { return pass_->rows_of(index); }
  std::optional<Tensors> rows_at(std::int64_t index, RowRange rows) override {
    Stopwatch watch(*this, 0);
    std::optional<Tensors> fields = pass_->rows_at(index, rows);
    if (fields) watch.elements = 1, watch.made(*fields);
    return fields;
  }
  std::optional<ChosenRows> chosen_rows(std::int64_t index, RowRange rows) override {
    Stopwatch watch(*this, 0);
    std::optional<ChosenRows> chosen = pass_->chosen_rows(index, rows);
    if (chosen) watch.elements = 1;
    return chosen;
  }

 private:
  struct Stopwatch {
    Stopwatch(TimedPass& p, std::int64_t n) : pass(p), elements(n) {
      StopScope::check();
      if (!log) [[likely]]
        return;
      const std::uint64_t name = pass.name_in(*log);
      log->begin(Activity::host);
      around = log->enter_stage(name);
    }
    ~Stopwatch() {
      StageTimes& times = pass.stage_.times();
      times.elements.fetch_add(elements, std::memory_order_relaxed);
      times.making.fetch_add(std::chrono::nanoseconds(Clock::now() - begin).count(), std::memory_order_relaxed);
      if (!log) [[likely]]
        return;
      log->enter_stage(around);
      log->end({.kind = ActivityEvent::Kind::stage,
                .part = pass.stage_.repeats_itself() ? 0 : 1,
                .name = pass.name_,
                .count = elements,
                .bytes = bytes >= 0 ? bytes : elements * pass.bytes_of_element_});
    }
    Stopwatch(const Stopwatch&) = delete;
    void made(const Tensors& fields) {
      if (log) bytes = bytes_of_all(fields);
    }
    TimedPass& pass;
    std::int64_t elements, bytes = -1;  // -1: as its specs say
    ActivityLog* const log = CallContext::here().log;
    std::uint64_t around = 0;  // the stage that reads this one
    const Clock::time_point begin = Clock::now();
  };
  std::uint64_t name_in(const ActivityLog& log) {
    if (named_in_ != log.profile().number()) {
      name_ = log.profile().name(stage_.name_in_chain());
      named_in_ = log.profile().number();
    }
    return name_;
  }
  std::unique_ptr<Pass> pass_;
  const Stage& stage_;
  std::int64_t bytes_of_element_ = 0;
  std::uint64_t named_in_ = 0, name_ = 0;
};

}  // namespace

StopScope::StopScope(const std::atomic<bool>& stop) { stop_wanted = &stop; }
StopScope::~StopScope() { stop_wanted = nullptr; }
StopScope::Pause::Pause() : paused_(std::exchange(stop_wanted, nullptr)) {}
StopScope::Pause::~Pause() { stop_wanted = paused_; }
void StopScope::check() {
  if (stop_wanted && stop_wanted->load(std::memory_order_relaxed)) throw Stopped();
}

std::span<const std::int64_t> MovedPass::all_moved(std::span<const std::int64_t> indices) {
  moved_.resize(indices.size());
  std::ranges::transform(indices, moved_.begin(), [this](std::int64_t index) { return moved(index); });
  return moved_;
}

std::unique_ptr<Pass> Stage::open(std::int64_t epoch) const {
  return std::make_unique<TimedPass>(make_pass(epoch), *this);
}

namespace {

/// The number of stages called `name` in the longest chain that ends in `stage`.
int count_named(const Stage& stage, const std::string& name) {
  int most = 0;
  for (const Stage* source : stage.sources()) most = std::max(most, count_named(*source, name));
  return most + (stage.name() == name ? 1 : 0);
}

}  // namespace

std::string Stage::name_in_chain() const {
  const int place = count_named(*this, name());
  return place == 1 ? name() : text(name(), ' ', place);
}

std::uint64_t Stage::fingerprint() const { return mix(hash_of(std::string_view(name())), identity()); }

/// For elements whose rows are known and equal in number.
std::optional<RowLayout> Stage::layout(std::int64_t epoch) const {
  if (!is_counted() || specs_.empty() || specs_[0].shape.rank() == 0) return {};
  const std::int64_t per_element = specs_[0].shape[0];
  for (const Spec& spec : specs_)
    if (spec.shape.rank() == 0 || spec.shape[0] != per_element) return {};
  std::int64_t rows = 0;
  if (per_element == any_size || __builtin_mul_overflow(length(epoch), per_element, &rows)) return {};
  return RowLayout{rows, per_element};
}

void ForwardPass::begin() {
  next_ = kept_ = -1;
  restart();
  next_ = 0;
  is_over_ = false;
}

Tensors ForwardPass::at(std::int64_t index) {
  if (index == kept_) return last_;
  if (next_ < 0 || index < next_) begin();
  while (next_ <= index && !is_over_) {
    const std::int64_t made = std::exchange(next_, -1);  // as long as next() may fail
    kept_ = -1;
    last_ = next();
    is_over_ = last_.empty();
    if (!is_over_) kept_ = made;
    next_ = is_over_ ? made : made + 1;
  }
  return index == kept_ ? last_ : Tensors();
}

std::int64_t ForwardPass::write_from(std::int64_t first, std::int64_t count, std::span<std::byte* const> out) {
  if (first == 0 && next_ != 0) begin();
  if (first > next_) at(first - 1);
  if (first != next_ || is_over_) return Pass::write_from(first, count, out);
  next_ = kept_ = -1;  // as long as write_next() may fail
  const std::int64_t made = write_next(count, out);
  next_ = first + made;
  is_over_ = made < count;
  return made;
}

std::int64_t ForwardPass::write_next(std::int64_t count, std::span<std::byte* const> out) {
  for (std::int64_t i = 0; i < count; ++i) {
    const Tensors element = next();
    if (element.empty()) return i;
    copy_to(out, static_cast<std::size_t>(i), element);
  }
  return count;
}

namespace {

class WindowPass : public MovedPass {
 public:
  WindowPass(std::unique_ptr<Pass> source, std::int64_t begin) : MovedPass(std::move(source)), begin_(begin) {}
  std::int64_t write_from(std::int64_t first, std::int64_t count, std::span<std::byte* const> out) override {
    return source().write_from(begin_ + first, count, out);
  }
  Tensors stack_from(const std::vector<Spec>& specs, std::int64_t first, std::int64_t count) override {
    return source().stack_from(specs, begin_ + first, count);
  }

 private:
  std::int64_t moved(std::int64_t index) override { return begin_ + index; }
  const std::int64_t begin_;
};

class WindowStage : public DerivedStage {
 public:
  WindowStage(StagePointer source, std::int64_t begin, std::int64_t count)
      : DerivedStage(source), begin_(begin), count_(count) {}
  std::int64_t length(std::int64_t epoch) const override {
    return std::min(count_, std::max(source().length(epoch) - begin_, std::int64_t{0}));
  }
  bool is_endless() const override { return source().is_endless() && count_ == endless_length; }
  StagePointer over(const std::vector<StagePointer>& sources, const PipelineChanges&) const override {
    return std::make_shared<WindowStage>(sources[0], begin_, count_);
  }
  std::string name() const override {
    return count_ == endless_length ? text("skip(", begin_, ")") : text("take(", count_, ")");
  }
  std::unique_ptr<Pass> make_pass(std::int64_t epoch) const override {
    return std::make_unique<WindowPass>(source().open(epoch), begin_);
  }

 private:
  const std::int64_t begin_, count_;
};

class ShardPass : public MovedPass {
 public:
  ShardPass(std::unique_ptr<Pass> source, std::int64_t count, std::int64_t first)
      : MovedPass(std::move(source)), count_(count), first_(first) {}

 private:
  std::int64_t moved(std::int64_t index) override { return first_ + count_ * index; }
  const std::int64_t count_, first_;
};

class ShardStage : public DerivedStage {
 public:
  ShardStage(StagePointer source, std::int64_t count, std::int64_t index)
      : DerivedStage(source), count_(count), index_(index) {}
  std::string name() const override { return text("shard(", count_, ", ", index_, ")"); }
  bool is_shard() const override { return true; }
  std::string_view remedy() const override {
    return "leave it out: every rank names the whole data set, and the strategy gives each its own rows of every batch";
  }
  StagePointer over(const std::vector<StagePointer>& sources, const PipelineChanges&) const override {
    return std::make_shared<ShardStage>(sources[0], count_, index_);
  }
  std::int64_t length(std::int64_t epoch) const override {
    const std::int64_t all = source().length(epoch);
    return all > index_ ? (all - index_ - 1) / count_ + 1 : 0;
  }
  std::unique_ptr<Pass> make_pass(std::int64_t epoch) const override {
    return std::make_unique<ShardPass>(source().open(epoch), count_, index_);
  }

 private:
  const std::int64_t count_, index_;
};

class StrideStage : public DerivedStage {
 public:
  StrideStage(StagePointer source, std::int64_t step) : DerivedStage(source), step_(step) {}
  std::string name() const override { return text("every ", step_); }
  StagePointer over(const std::vector<StagePointer>& sources, const PipelineChanges&) const override {
    return std::make_shared<StrideStage>(sources[0], step_);
  }
  std::int64_t length(std::int64_t epoch) const override {
    const std::int64_t all = source().length(epoch);
    return all / step_ + (all % step_ != 0);
  }
  std::unique_ptr<Pass> make_pass(std::int64_t epoch) const override {
    return std::make_unique<ShardPass>(source().open(epoch), step_, 0);
  }

 private:
  const std::int64_t step_;
};

/// Maps the reader's epoch to one of the source.
class StartStage : public DerivedStage {
 public:
  StartStage(StagePointer source, Position start, bool same_epoch)
      : DerivedStage(source), start_(start), same_epoch_(same_epoch) {}
  std::string name() const override {
    return same_epoch_ ? text("epoch(", start_.epoch, ")") : text("from(", start_.epoch, ", ", start_.index, ")");
  }
  std::int64_t length(std::int64_t epoch) const override {
    return std::max(source().length(epoch_of(epoch)) - first_of(epoch), std::int64_t{0});
  }
  bool repeats_itself() const override { return same_epoch_ || source().repeats_itself(); }
  StagePointer over(const std::vector<StagePointer>& sources, const PipelineChanges&) const override {
    return std::make_shared<StartStage>(sources[0], start_, same_epoch_);
  }
  std::unique_ptr<Pass> make_pass(std::int64_t epoch) const override {
    return std::make_unique<WindowPass>(source().open(epoch_of(epoch)), first_of(epoch));
  }

 private:
  std::int64_t epoch_of(std::int64_t epoch) const { return start_.epoch + (same_epoch_ ? 0 : epoch); }
  std::int64_t first_of(std::int64_t epoch) const { return epoch == 0 || same_epoch_ ? start_.index : 0; }
  const Position start_;
  const bool same_epoch_;
};

/// Rounds in sequence. Only the first one may have another length (a start within an epoch).
class RepeatPass : public PartedPass {
 public:
  RepeatPass(const Stage& source, std::int64_t epoch)
      : PartedPass(source.specs()),
        source_(source),
        epoch_(epoch),
        first_(source.length(epoch)),
        length_(source.length(epoch + 1)) {}

 private:
  Place place_of(std::int64_t index) override {
    if (index < first_) return {0, index};
    return {1 + (index - first_) / length_, (index - first_) % length_};
  }
  Pass& part(std::int64_t round) override {
    if (!pass_ || round != number_) pass_ = source_.open(epoch_ + round);
    number_ = round;
    return *pass_;
  }

  const Stage& source_;
  const std::int64_t epoch_, first_, length_;
  std::unique_ptr<Pass> pass_;
  std::int64_t number_ = 0;
};

/// The same where rounds end as they will. A round without elements ends it: no other would have any, but after the
/// first one, which may start at its end.
class CountingRepeatPass : public ForwardPass {
 public:
  CountingRepeatPass(const Stage& source, std::int64_t epoch, std::optional<std::int64_t> times)
      : source_(source), epoch_(epoch), times_(times) {}

 private:
  void restart() override { begin_round(0); }
  Tensors next() override {
    while (!times_ || round_ < *times_) {
      Tensors element = index_ < length_ ? pass_->at(index_) : Tensors();
      if (!element.empty()) {
        ++index_;
        return element;
      }
      if (index_ == 0 && round_ > 0) return {};
      if (times_ && round_ + 1 == *times_) return {};
      begin_round(round_ + 1);
    }
    return {};
  }
  void begin_round(std::int64_t round) {
    pass_ = source_.open(epoch_ + round);
    length_ = source_.length(epoch_ + round);
    round_ = round;
    index_ = 0;
  }
  const Stage& source_;
  const std::int64_t epoch_;
  const std::optional<std::int64_t> times_;
  std::unique_ptr<Pass> pass_;
  std::int64_t round_ = 0, index_ = 0, length_ = 0;
};

/// Epoch e of it begins where epoch e - 1 ended; one without end begins a round later.
class RepeatStage : public DerivedStage {
 public:
  RepeatStage(StagePointer source, std::optional<std::int64_t> times) : DerivedStage(source), times_(times) {}
  std::string name() const override { return times_ ? text("repeat(", *times_, ")") : "repeat"; }
  StagePointer over(const std::vector<StagePointer>& sources, const PipelineChanges& changes) const override {
    if (changes.without_repeats && times_ != 0) return sources[0];
    return std::make_shared<RepeatStage>(sources[0], times_);
  }
  std::int64_t length(std::int64_t epoch) const override {
    if (times_ == 0) return 0;
    if (!is_counted()) return endless_length;
    const std::int64_t round = source().length(first_epoch(epoch) + 1);
    if (!times_) return round > 0 ? endless_length : 0;
    return source().length(first_epoch(epoch)) + (*times_ - 1) * round;
  }
  bool is_endless() const override { return !times_ && source().length(1) > 0; }
  std::unique_ptr<Pass> make_pass(std::int64_t epoch) const override {
    if (!is_counted()) return std::make_unique<CountingRepeatPass>(source(), first_epoch(epoch), times_);
    return std::make_unique<RepeatPass>(source(), first_epoch(epoch));
  }

 private:
  /// A number of any size will do, so it may wrap around.
  std::int64_t first_epoch(std::int64_t epoch) const {
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(epoch) *
                                     static_cast<std::uint64_t>(times_.value_or(1)));
  }
  const std::optional<std::int64_t> times_;
};

}  // namespace

StagePointer window_stage(StagePointer source, std::int64_t begin, std::int64_t count) {
  return std::make_shared<WindowStage>(std::move(source), begin, count);
}
StagePointer shard_stage(StagePointer source, std::int64_t count, std::int64_t index) {
  return std::make_shared<ShardStage>(std::move(source), count, index);
}
StagePointer stride_stage(StagePointer source, std::int64_t step) {
  return std::make_shared<StrideStage>(std::move(source), step);
}
StagePointer repeat_stage(StagePointer source, std::optional<std::int64_t> times) {
  return std::make_shared<RepeatStage>(std::move(source), times);
}
StagePointer start_stage(StagePointer source, Position start, bool same_epoch) {
  return std::make_shared<StartStage>(std::move(source), start, same_epoch);
}

}  // namespace gradus
