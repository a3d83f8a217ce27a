/// Checks arguments, chains stages, and reads passes.
#include "gradus/data/pipeline.h"
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <string_view>
#include "gradus/base/activity_log.h"
#include "gradus/base/floating_point_state.h"
#include "gradus/data/batch_readers.h"
#include "gradus/data/order.h"
#include "gradus/data/prefetch.h"
#include "gradus/data/stage.h"
#include "gradus/graph/call_context.h"
#include "gradus/scalar/scalar.h"
#include "gradus/ops/random_key.h"

namespace gradus {
namespace {

constexpr std::int64_t largest_epoch = std::int64_t{1} << 53;

/// Bytes held by a stage and all that it reads.
std::int64_t bytes_held_by(const Stage& stage) {
  std::int64_t bytes = stage.held_bytes();
  for (const Stage* source : stage.sources()) bytes += bytes_held_by(*source);
  return bytes;
}

/// A reader takes an element: an entry in the profile of its thread, if one is taken.
class ProfiledFetch {
 public:
  ProfiledFetch(const Stage& stage, std::int64_t epoch) : stage_(stage), epoch_(epoch) {
    if (log_) [[unlikely]]
      log_->begin(Activity::input, ActivityEvent::Kind::fetch);
  }
  ~ProfiledFetch() {
    if (log_) [[unlikely]]
      log_->end({.kind = ActivityEvent::Kind::fetch,
                 .part = was_made_ahead_ ? 1 : 0,
                 .name = log_->profile().name(stage_.name_in_chain()),
                 .bytes = epoch_,
                 .flow = flow_});
  }
  ProfiledFetch(const ProfiledFetch&) = delete;
  /// `flow`: the number that it has if it was made ahead. The program that reads it first is its use.
  void took(const Tensors& element, bool was_made_ahead, std::uint64_t flow) {
    if (!log_) [[likely]]
      return;
    was_made_ahead_ = was_made_ahead;
    flow_ = flow != 0 || was_made_ahead ? flow : log_->profile().next_flow();
    std::vector<const void*> fields;
    for (const Tensor& field : element) fields.push_back(field.node()->value.get());
    log_->note_batch(flow_, std::move(fields));
  }

 private:
  const Stage& stage_;
  const std::int64_t epoch_;
  ActivityLog* const log_ = CallContext::here().log;
  bool was_made_ahead_ = false;
  std::uint64_t flow_ = 0;
};

class PassReading : public Reading {
 public:
  PassReading(StagePointer stage, Position start, PrefetchOptions ahead)
      : stage_(std::move(stage)),
        epoch_(start.epoch),
        index_(start.index),
        length_(stage_->length(start.epoch)),
        counted_(stage_->is_counted()),
        ahead_(ahead) {}

  bool at_end() override {
    if (!counted_ && element_.empty() && index_ < length_) element_ = fetch();
    return index_ >= length_;
  }
  const Tensors& element() override {
    require_more();
    if (element_.empty()) element_ = fetch();
    return element_;
  }
  void advance() override {
    require_more();
    if (prefetcher_ && element_.empty()) fetch();
    element_.clear();
    ++index_;
    if (index_ >= length_) prefetcher_.reset();
  }
  Position position() const override { return {epoch_, index_}; }

 private:
  void require_more() {
    require<OutOfRange>(!at_end(), "the pass over this dataset has ended after ", index_,
                        " elements; compare the iterator with end(), or call begin() for the next pass");
  }
  /// No tensors: here is the end.
  Tensors fetch() {
    try {
      Tensors element = make();
      if (element.empty()) end_here();
      return element;
    } catch (...) {
      end_here();
      throw;
    }
  }
  Tensors make() {
    const HostFloats floats;
    ProfiledFetch fetch(*stage_, epoch_);
    std::uint64_t flow = 0;
    Tensors element = make(flow);
    fetch.took(element, prefetcher_ != nullptr, flow);
    tell_what_is_held();
    return element;
  }
  /// Once to each profile.
  void tell_what_is_held() {
    ActivityLog* const log = CallContext::here().log;
    if (!log || std::exchange(told_, log->profile().number()) == log->profile().number()) [[likely]]
      return;
    const std::int64_t now = ActivityLog::now();
    log->keep({.kind = ActivityEvent::Kind::held,
               .name = log->profile().name(stage_->name_in_chain()),
               .begin = now,
               .end = now,
               .bytes = bytes_held_by(*stage_)});
  }
  Tensors make(std::uint64_t& flow) {
    ++stage_->times().reads;
    if (ahead_.buffers == 0) {
      if (!pass_) pass_ = stage_->open(epoch_);
      return pass_->at(index_);
    }
    if (!prefetcher_) prefetcher_ = std::make_unique<Prefetcher>(stage_, epoch_, index_, length_, ahead_);
    return prefetcher_->next(flow);
  }
  void end_here() {
    length_ = index_;
    prefetcher_.reset();
  }

  const StagePointer stage_;
  const std::int64_t epoch_;
  std::int64_t index_, length_;
  const bool counted_;
  const PrefetchOptions ahead_;
  Tensors element_;  // empty: not read yet
  std::unique_ptr<Pass> pass_;
  std::unique_ptr<Prefetcher> prefetcher_;
  std::uint64_t told_ = 0;  // the profile that knows what the stages hold
};

void check_padding(std::string_view stage, const std::vector<Spec>& fields, const PaddedBatchOptions& options) {
  const std::size_t shapes = options.padded_shapes.size(), values = options.padding_values.size();
  require(shapes == 0 || shapes == fields.size(), stage, ": ", shapes, " padded_shapes for ", fields.size(), " fields");
  require(values <= 1 || values == fields.size(), stage, ": ", values, " padding_values for ", fields.size(),
          " fields; expected one for each, or one for all");
  for (std::size_t i = 0; i < fields.size() && values > 0; ++i) {
    const double value = options.padding_values[values == 1 ? 0 : i];
    require<OutOfRange>(scalar::Literal(value).fits(fields[i].dtype), stage, ": the padding value ", value, " is no ",
                        fields[i].dtype, ", of which field ", i, " is made");
  }
  for (std::size_t i = 0; i < shapes; ++i) {
    const Shape &padded = options.padded_shapes[i], &given = fields[i].shape;
    require(padded.rank() == given.rank(), stage, ": field ", i, " is ", fields[i], ", padded_shapes says ",
            brackets(padded));
    for (int axis = 0; axis < padded.rank(); ++axis)
      require(padded[axis] == any_size || given[axis] == any_size || padded[axis] >= given[axis], stage, ": field ", i,
              " is ", fields[i], ", more than the ", brackets(padded), " of padded_shapes");
  }
}

}  // namespace

Pipeline& Pipeline::operator=(const Pipeline& other) {
  stage_ = other.stage_;
  start_ = other.start_;
  ahead_ = other.ahead_;
  readers_ = other.readers_;
  passes_ = 0;
  return *this;
}

StagePointer Pipeline::with_start() const {
  if (start_.position == Position{} && !start_.same_epoch) return stage_;
  return start_stage(stage_, start_.position, start_.same_epoch);
}

/// Reading ahead is a matter of the whole chain, as are those who read it together.
Pipeline Pipeline::derived(StagePointer stage) const {
  Pipeline result(std::move(stage));
  result.ahead_ = ahead_;
  result.readers_ = readers_;
  return result;
}

Pipeline Pipeline::map(const ElementFunction& trace, ElementFunction run, MapOptions options) const {
  check_options("map", options);
  require(options.num_parallel_calls != 0, "map: num_parallel_calls must be positive or autotune, got ",
          options.num_parallel_calls);
  return derived(map_stage(with_start(), trace, std::move(run), options));
}

Pipeline Pipeline::shuffle(ShuffleOptions options) const {
  require(!stage_->is_endless(),
          "shuffle: this dataset has no end, so all of it cannot be permuted; shuffle before "
          "repeat(), or give a buffer size");
  require(stage_->is_counted(),
          "shuffle: how many elements this dataset has is not known without reading them; shuffle before filter() and "
          "the like, or give a buffer size");
  return derived(
      shuffle_stage(with_start(), options.seed ? *options.seed : next_seed(), options.reshuffle_each_iteration));
}

Pipeline Pipeline::shuffle(std::int64_t buffer_size, ShuffleOptions options) const {
  require(buffer_size > 0 && buffer_size <= largest_order, "shuffle: expected a buffer of 1 to ", largest_order,
          " elements, got ", buffer_size);
  return derived(buffered_shuffle_stage(with_start(), buffer_size, options.seed ? *options.seed : next_seed(),
                                        options.reshuffle_each_iteration));
}

Pipeline Pipeline::batch(std::int64_t size, BatchOptions options) const {
  require(size > 0, "batch: size must be positive, got ", size);
  return derived(batch_stage(with_start(), size, options.drop_remainder));
}

Pipeline Pipeline::padded_batch(std::int64_t size, PaddedBatchOptions options) const {
  require(size > 0, "padded_batch: size must be positive, got ", size);
  check_padding("padded_batch", stage_->specs(), options);
  return derived(padded_batch_stage(with_start(), size, std::move(options)));
}

Pipeline Pipeline::bucket_by_sequence_length(const ElementFunction& trace, ElementFunction run,
                                             BucketOptions options) const {
  constexpr std::string_view name = "bucket_by_sequence_length";
  require(std::ranges::is_sorted(options.bucket_boundaries, std::less_equal<>()), name,
          ": the boundaries must be ascending");
  require(options.bucket_batch_sizes.size() == options.bucket_boundaries.size() + 1, name, ": ",
          options.bucket_boundaries.size(), " boundaries make ", options.bucket_boundaries.size() + 1,
          " buckets, but there are ", options.bucket_batch_sizes.size(), " batch sizes");
  check_options(name, options);
  check_padding(name, stage_->specs(), options.padding);
  return derived(bucket_stage(with_start(), trace, std::move(run), std::move(options)));
}

Pipeline Pipeline::filter(const ElementFunction& trace, ElementFunction run) const {
  return derived(filter_stage(with_start(), trace, std::move(run)));
}

Pipeline Pipeline::unbatch() const {
  for (const Spec& spec : stage_->specs())
    require(spec.shape.rank() > 0, "unbatch: a field is a scalar ", spec, ": it has no rows along axis 0");
  return derived(unbatch_stage(with_start()));
}

Pipeline Pipeline::interleave(PipelineFunction f, InterleaveOptions options, std::string name) const {
  check_options("interleave", options);
  return derived(interleave_stage(with_start(), std::move(f), options, std::move(name)));
}

Pipeline Pipeline::shard(int count, int index) const {
  require(count > 0, "shard: expected a positive number of shards, got ", count);
  require(index >= 0 && index < count, "shard: index must be within 0 and ", count - 1, ", got ", index);
  return derived(shard_stage(with_start(), count, index));
}

Pipeline Pipeline::generate(std::vector<Spec> specs, GeneratorFunction next) {
  return Pipeline(generator_stage(std::move(specs), std::move(next)));
}

Pipeline Pipeline::generate(std::vector<Spec> specs, ElementSourceFunction begin) {
  return Pipeline(generator_stage(std::move(specs), std::move(begin)));
}

Pipeline Pipeline::cache() const {
  require(!stage_->is_endless(), "cache: this dataset has no end; cache before repeat()");
  return derived(cache_stage(with_start()));
}

Pipeline Pipeline::cache(const std::filesystem::path& file) const {
  require(!stage_->is_endless(), "cache: this dataset has no end; cache before repeat()");
  return derived(disk_cache_stage(with_start(), file));
}

Pipeline Pipeline::repeat(std::int64_t times) const {
  require(times >= -1, "repeat: expected a number of rounds, or -1 for without end, got ", times);
  if (stage_->is_endless()) return times == 0 ? take(0) : derived(with_start());
  const std::int64_t length = stage_->is_counted() ? stage_->length(1) : 1;
  require(times <= 0 || length <= endless_length / times, "repeat: ", times, " rounds of ", length,
          " elements are more than 2^63 - 1");
  return derived(repeat_stage(with_start(), times < 0 ? std::nullopt : std::optional(times)));
}

Pipeline Pipeline::take(std::int64_t n) const {
  require(n >= 0, "take: expected a number of elements, got ", n);
  return derived(window_stage(with_start(), 0, n));
}

Pipeline Pipeline::skip(std::int64_t n) const {
  require(n >= 0, "skip: expected a number of elements, got ", n);
  return derived(window_stage(with_start(), n, endless_length));
}

Pipeline Pipeline::epoch(std::int64_t e) const {
  require(e >= 0 && e <= largest_epoch, "epoch: expected a number from 0 to ", largest_epoch, ", got ", e);
  Pipeline result(*this);
  result.start_ = {{e, 0}, true};
  return result;
}

Pipeline Pipeline::from(Position position) const {
  require(position.epoch >= 0 && position.epoch <= largest_epoch && position.index >= 0,
          "from: expected an epoch from 0 to ", largest_epoch, " and an index from 0, got epoch ", position.epoch,
          ", index ", position.index);
  const std::int64_t length = stage_->length(position.epoch);
  require<OutOfRange>(position.index <= length, "from: index ", position.index, " is past the ", length,
                      " elements of epoch ", position.epoch);
  Pipeline result(*this);
  result.start_ = {position, false};
  return result;
}

Pipeline Pipeline::prefetch(PrefetchOptions options) const {
  check_options("prefetch", options);
  require(options.buffers != 0, "prefetch: buffers must be positive or autotune, got ", options.buffers);
  Pipeline result(*this);
  result.ahead_ = options;
  return result;
}

Pipeline Pipeline::read_by(std::shared_ptr<const BatchReaders> readers) const {
  if (readers_ == readers) return *this;  // it is already
  require(readers_ == nullptr, "a data set that another strategy has distributed; give the data set itself");
  Pipeline result(*this);
  result.stage_ = rank_rows_stage(stage_, readers);
  result.readers_ = std::move(readers);
  return result;
}

PipelineExplanation Pipeline::explain() const { return explanation_of(*stage_); }

std::optional<std::int64_t> Pipeline::cardinality() const {
  if (stage_->is_endless() || !stage_->is_counted()) return {};
  return stage_->length(start_.position.epoch + 1);
}

std::optional<std::pair<std::int64_t, std::int64_t>> Pipeline::rows() const {
  const std::optional<RowLayout> layout = stage_->layout(start_.position.epoch);
  if (!layout) return {};
  return std::pair{layout->rows, layout->per_element};
}

bool Pipeline::is_endless() const { return stage_->is_endless(); }

std::optional<int> Pipeline::batchings() const { return stage_->batchings(); }

const std::vector<Spec>& Pipeline::specs() const { return stage_->specs(); }

std::unique_ptr<Reading> Pipeline::read(std::int64_t pass, PrefetchOptions ahead) const {
  Position start = start_.position;
  if (pass > 0) start = {start.epoch + (start_.same_epoch ? 0 : pass), 0};
  return std::make_unique<PassReading>(stage_, start, ahead);
}

std::unique_ptr<Reading> Pipeline::begin() const {
  std::unique_ptr<Reading> reading = read(passes_++, ahead_);
  if (!readers_ || stage_->is_counted()) return reading;
  return shared_reading(std::move(reading), stage_->specs(), readers_);
}

Tensors Pipeline::first() const {
  const auto reading = read(0, {.buffers = 0});
  require<OutOfRange>(!reading->at_end(), "first: this dataset has no elements");
  return reading->element();
}

}  // namespace gradus
